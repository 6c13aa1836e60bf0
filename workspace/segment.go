package workspace

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// termKind says what a term was made of; a query weighs its terms by it.
type termKind uint8

const (
	word       termKind = iota // a plain word or number, stemmed
	whole                      // an identifier, path, flag, version or error code as one piece
	part                       // a piece of a whole
	han                        // two characters of Chinese or Japanese, or one that stands alone
	kana                       // two characters of which neither is Han
	hangul                     // the first two syllables of a Korean word, mostly its stem
	hangulPart                 // two later ones, mostly an ending, or the whole word
)

const (
	maxIndexed = 64 << 10 // bytes of a document that are searchable
	maxTerm    = 96       // bytes of a term; longer ones are encoded data, not words
)

// eachTerm calls yield for every search term of the first 64 KiB of text, in
// order and with repetitions. Terms are lower case, width-folded, free of
// spaces, and the same for a document and a query. Stop words are left out.
func eachTerm(text string, yield func(term string, kind termKind)) {
	s := segmenter{yield: yield}
	s.segment(text)
}

// segment also calls s.spelled, if that is set, for every word of letters as it
// was spelt but for its case, stop words too.
func (s *segmenter) segment(text string) {
	text = cutBytes(text, maxIndexed)
	for i := 0; i < len(text); {
		var r rune
		size := 1
		if r = rune(text[i]); r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[i:])
			r = fold(r)
		}
		i += size
		c := inWord
		if r < 'a' || r > 'z' {
			c = classOf(r)
		}
		switch c {
		case inWord:
			if len(s.run) > 0 {
				s.flushCJK()
			}
			s.mixed = s.mixed || r < 'a' || r > 'z'
			s.word = utf8.AppendRune(s.word, r)
		case joiner:
			s.flushCJK()
			if len(s.word) > 0 {
				s.mixed = true
				s.word = append(s.word, byte(r))
			}
		case mark:
		case ideograph, syllabary, hangulSyllable:
			s.flushWord()
			if len(s.run) > 0 && (s.hangul != (c == hangulSyllable)) {
				s.flushCJK()
			}
			s.hangul = c == hangulSyllable
			s.run = append(s.run, r)
		default:
			s.flushWord()
			s.flushCJK()
		}
	}
	s.flushWord()
	s.flushCJK()
}

type class uint8

const (
	gap class = iota
	inWord
	joiner // between parts of an identifier
	mark   // belongs to the letter before it
	ideograph
	syllabary
	hangulSyllable
)

func classOf(r rune) class {
	if r < utf8.RuneSelf {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return inWord
		case r == '_', r == '-', r == '.', r == '/', r == '\\', r == ':', r == '@', r == '\'':
			return joiner
		}
		return gap
	}
	switch {
	case r == '’':
		return gap
	case r >= 0x3041 && r <= 0x30FF && r != '・', r >= 0x31F0 && r <= 0x31FF:
		return syllabary
	case r >= 0xAC00 && r <= 0xD7A3:
		return hangulSyllable
	case r >= 0x4E00 && r <= 0x9FFF, r >= 0x3400 && r <= 0x4DBF, r == '々', unicode.Is(unicode.Han, r):
		return ideograph
	case unicode.Is(unicode.Hangul, r):
		return hangulSyllable
	case unicode.IsLetter(r), unicode.IsDigit(r):
		return inWord
	case unicode.Is(unicode.Mn, r):
		return mark
	}
	return gap
}

// accents maps U+00C0–U+017F to plain letters; a dot keeps the letter.
const accents = "aaaaaa.ceeeeiiii.nooooo.ouuuuy..aaaaaa.ceeeeiiii.nooooo.ouuuuy.y" +
	"aaaaaaccccccccddddeeeeeeeeeegggggggghhhhiiiiiiiiii..jjkk.llllll." +
	".llnnnnnn...oooooo..rrrrrrssssssssttttttuuuuuuuuuuuuwwyyyzzzzzz."

// halfKana maps U+FF66–U+FF9D to full-width katakana.
const halfKana = "ヲァィゥェォャュョッーアイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワン"

// fold maps width variants and accented Latin letters to their plain forms, as
// far as words of a dialogue need it.
func fold(r rune) rune {
	switch {
	case r >= 0xC0 && r <= 0x17F:
		i := r - 0xC0
		if int(i) < len(accents) && accents[i] != '.' {
			if unicode.IsUpper(r) {
				return rune(accents[i]) - 'a' + 'A'
			}
			return rune(accents[i])
		}
	case r >= 0xFF01 && r <= 0xFF5E:
		return r - 0xFF01 + '!'
	case r >= 0xFF66 && r <= 0xFF9D:
		k, _ := utf8.DecodeRuneInString(halfKana[3*(r-0xFF66):])
		return k
	case r == 0x3000:
		return ' '
	case r == '\u2019':
		return '\''
	case r == '\u2010', r == '\u2011':
		return '-'
	}
	return r
}

type segmenter struct {
	yield   func(string, termKind)
	spelled func(string)
	word    []byte
	mixed   bool // the word has more than small ASCII letters
	run     []rune
	hangul  bool
	parts   []string
}

func (s *segmenter) emit(term string, kind termKind) {
	if term != "" && len(term) <= maxTerm {
		s.yield(term, kind)
	}
}

func (s *segmenter) flushCJK() {
	run := s.run
	if len(run) == 0 {
		return
	}
	s.run = s.run[:0]
	kind := hangul
	if len(run) == 1 {
		if !s.hangul {
			kind = han
		}
		s.emit(string(run), kind)
		return
	}
	for i := range len(run) - 1 {
		switch {
		case s.hangul && i > 0:
			kind = hangulPart
		case s.hangul:
		case isKana(run[i]) && isKana(run[i+1]):
			kind = kana
		default:
			kind = han
		}
		s.emit(string(run[i:i+2]), kind)
	}
	if s.hangul && len(run) > 2 {
		s.emit(string(run), hangulPart)
	}
}

func isKana(r rune) bool { return r >= 0x3041 && r <= 0x31FF }

// flushWord ends a run of word characters and joiners: a word, or an identifier
// with its parts.
func (s *segmenter) flushWord() {
	if len(s.word) == 0 {
		return
	}
	raw, mixed := string(s.word), s.mixed
	s.word, s.mixed = s.word[:0], false
	if mixed {
		raw = strings.TrimRight(raw, `_-./\:@'`)
		if isLower(raw[1:]) && raw[0] < utf8.RuneSelf && unicode.IsLetter(rune(raw[0])) { // it begins or ends a sentence
			raw, mixed = strings.ToLower(raw), false
		}
	}
	if !mixed {
		s.spell(raw)
		if !isStopWord(raw) {
			s.emit(stem(raw), word)
		}
		return
	}
	pieces := 0
	for piece := range splitAny(raw, `/\:@`) {
		pieces++
		s.dotted(piece)
	}
	if pieces > 1 {
		s.emit(strings.ReplaceAll(strings.ToLower(raw), `\`, "/"), whole)
	}
}

// dotted handles middleware.ts, os.path.join and 1.2.3.
func (s *segmenter) dotted(text string) {
	n := 0
	for piece := range splitAny(text, ".") {
		n++
		s.identifier(piece)
	}
	if n > 1 {
		s.emit(strings.ToLower(strings.Trim(text, ".-_'")), whole)
	}
}

// identifier handles getUserName, get_user_name and get-user-name: each is
// found by its words and by the joined word that all three share.
func (s *segmenter) identifier(text string) {
	s.parts = s.parts[:0]
	for piece := range splitAny(text, "_-") {
		s.parts = appendCamel(s.parts, strings.ReplaceAll(strings.TrimSuffix(strings.TrimSuffix(piece, "'s"), "'S"), "'", ""))
	}
	if len(s.parts) == 1 {
		w := strings.ToLower(s.parts[0])
		s.spell(w)
		switch {
		case isStopWord(w):
		case hasDigitAndLetter(w):
			s.emit(w, whole)
		default:
			s.emit(stem(w), word)
		}
		return
	}
	for _, p := range s.parts {
		p = strings.ToLower(p)
		s.spell(p)
		if len(p) > 1 && !isStopWord(p) {
			s.emit(stem(p), part)
		}
	}
	s.emit(stem(strings.ToLower(strings.Join(s.parts, ""))), whole)
}

func (s *segmenter) spell(w string) {
	if s.spelled != nil && isLower(w) {
		s.spelled(w)
	}
}

func hasDigitAndLetter(s string) bool {
	digit := strings.ContainsAny(s, "0123456789")
	return digit && strings.Trim(s, "0123456789") != ""
}

// splitAny yields the non-empty pieces of s between any of the bytes in seps.
func splitAny(s, seps string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for s != "" {
			i := strings.IndexAny(s, seps)
			if i < 0 {
				yield(s)
				return
			}
			if i > 0 && !yield(s[:i]) {
				return
			}
			s = s[i+1:]
		}
	}
}

// appendCamel splits getHTTPServer into get, HTTP, Server.
func appendCamel(dst []string, s string) []string {
	start := 0
	var prev rune
	for i, r := range s {
		upper := unicode.IsUpper(r)
		next, _ := utf8.DecodeRuneInString(s[i+utf8.RuneLen(r):])
		if i > start && upper && (unicode.IsLower(prev) || unicode.IsUpper(prev) && unicode.IsLower(next)) {
			dst = append(dst, s[start:i])
			start = i
		}
		prev = r
	}
	if start < len(s) {
		dst = append(dst, s[start:])
	}
	return dst
}

// stem takes off the endings of English so that releases, released, releasing and
// releaser meet release, and migration meets migrate. It need not give words, only
// the same string.
func stem(w string) string {
	if base := irregular(w); base != "" {
		return base
	}
	if len(w) < 4 || !isLower(w) {
		return w
	}
	switch {
	case strings.HasSuffix(w, "ies") && len(w) > 4:
		w = w[:len(w)-3] + "y"
	case hasAnySuffix(w, "sses", "xes", "zes", "ches", "shes", "ses"):
		w = w[:len(w)-2]
	case strings.HasSuffix(w, "s") && !hasAnySuffix(w, "ss", "us", "is"):
		w = w[:len(w)-1]
	}
	if base, ok := strings.CutSuffix(w, "ied"); ok && len(base) > 2 {
		w = base + "y"
	}
	for _, end := range []string{"ing", "ed"} {
		base, ok := strings.CutSuffix(w, end)
		if !ok || len(base) < 3 || !strings.ContainsAny(base, "aeiouy") || strings.HasSuffix(w, "eed") {
			continue
		}
		w = undouble(base)
	}
	switch {
	case hasAnySuffix(w, "sion", "tion") && len(w) > 6:
		w = w[:len(w)-3]
	case strings.HasSuffix(w, "ment") && len(w) > 8:
		w = w[:len(w)-4]
	}
	if len(w) > 3 {
		w = strings.TrimSuffix(w, "e")
	}
	if strings.HasSuffix(w, "at") && len(w) > 6 {
		w = w[:len(w)-2]
	}
	return w
}

// undouble makes run of runn.
func undouble(w string) string {
	if n := len(w); n > 2 && w[n-1] == w[n-2] && !strings.ContainsRune("lsz", rune(w[n-1])) {
		return w[:n-1]
	}
	return w
}

// irregular gives the stem of forms that no rule makes.
func irregular(w string) string {
	switch w {
	case "built", "builds":
		return "build"
	case "sent", "sends":
		return "send"
	case "kept", "keeps":
		return "keep"
	case "wrote", "written":
		return "writ"
	case "froze", "frozen":
		return "freez"
	case "broke", "broken":
		return "break"
	case "chose", "chosen":
		return "choos"
	case "took", "taken":
		return "tak"
	case "made":
		return "mak"
	case "found":
		return "find"
	case "lost":
		return "los"
	case "left":
		return "leav"
	case "held":
		return "hold"
	case "told":
		return "tell"
	case "gave", "given":
		return "giv"
	case "came":
		return "com"
	case "went", "gone", "goes":
		return "go"
	case "began", "begun", "beginning":
		return "begin"
	case "bought":
		return "buy"
	case "caught":
		return "catch"
	case "meant":
		return "mean"
	case "spent":
		return "spend"
	case "shown":
		return "show"
	case "drew", "drawn":
		return "draw"
	case "grew", "grown":
		return "grow"
	case "knew", "known":
		return "know"
	case "threw", "thrown":
		return "throw"
	case "hidden":
		return "hid"
	case "stolen", "stole":
		return "steal"
	case "fed":
		return "feed"
	case "indices":
		return "index"
	case "children":
		return "child"
	}
	return ""
}

func isLower(s string) bool {
	for i := range len(s) {
		if s[i] < 'a' || s[i] > 'z' {
			return false
		}
	}
	return true
}

func hasAnySuffix(s string, suffixes ...string) bool {
	for _, suffix := range suffixes {
		if strings.HasSuffix(s, suffix) {
			return true
		}
	}
	return false
}

// isStopWord is a switch and not a map: a map would be filled at every start of
// a hook.
func isStopWord(w string) bool {
	switch w {
	case "a", "an", "the", "this", "that", "these", "those", "it", "its", "i", "im", "ive", "id", "ill", "me", "my", "mine", "we", "us", "our", "ours",
		"you", "your", "yours", "he", "him", "his", "she", "her", "hers", "they", "them", "their", "theirs",
		"and", "or", "but", "nor", "if", "then", "else", "so", "than", "as", "of", "at", "by", "for", "from", "in", "into", "on", "onto", "to", "with", "without",
		"about", "above", "after", "before", "below", "between", "over", "under", "up", "down", "out", "off", "per", "via",
		"is", "am", "are", "was", "were", "be", "been", "being", "do", "does", "did", "done", "doing", "have", "has", "had", "having",
		"can", "could", "will", "would", "shall", "should", "may", "might", "must", "lets", "let",
		"not", "no", "yes", "dont", "doesnt", "didnt", "cant", "wont", "isnt", "arent", "wasnt", "shouldnt",
		"what", "which", "who", "whom", "whose", "when", "where", "why", "how", "whats", "there", "here", "theres",
		"all", "any", "both", "each", "few", "more", "most", "other", "some", "such", "only", "own", "same", "too", "very", "just", "also", "again", "once", "ever", "still",
		"please", "thanks", "thank", "ok", "okay", "hi", "hello", "now", "well", "like", "etc", "eg", "ie":
		return true
	}
	return false
}

// isWeakWord names words that say little in a dialogue with a coding agent,
// whatever their number in a small workspace suggests. They are stems.
func isWeakWord(w string) bool {
	switch w {
	case "project", "fil", "cod", "test", "work", "us", "use", "used", "using", "mak", "need", "want", "get", "got", "set", "new", "add", "run", "fix", "chang", "updat", "creat",
		"tell", "know", "remember", "think", "look", "see", "show", "find", "check", "giv", "tak", "help", "try", "start", "stop", "go", "going", "com", "put", "keep",
		"thing", "way", "time", "day", "today", "one", "two", "first", "last", "next", "good", "right", "wrong", "said", "say", "mean", "question", "answer",
		"function", "method", "class", "line", "error", "issu", "problem", "implement", "writ", "read", "user", "assistant", "note", "noted", "yesterday", "tomorrow", "already", "called", "call":
		return true
	}
	return false
}

// isFunctionHan tells whether a character mostly serves grammar, so that a
// two-character term with it carries little.
func isFunctionHan(r rune) bool {
	return strings.ContainsRune("的了吗呢吧啊么是什怎哪谁我你他她它们这那个些就也都和与及或被把请在有不没要会能可以对从到给让为很还又再只吗呀地得着过", r)
}

// cutBytes shortens s to at most n bytes without cutting a character.
func cutBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
