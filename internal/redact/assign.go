package redact

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	passwordMark = "password"
	secretMark   = "secret"
)

// keyword is a word that ends the name of something secret.
type keyword struct {
	word   string // in lower case
	strong bool   // what follows was chosen by a human, and needs no randomness
	alone  bool   // the name has nothing before the word but a separator
}

var keywords = []keyword{
	{"password", true, false}, {"passwd", true, false}, {"passphrase", true, false}, {"passcode", true, false}, {"pwd", true, false}, {"_pass", true, false}, {"-pass", true, false}, {"pass", true, true},
	{"secret", false, false}, {"token", false, false}, {"credential", false, false},
	{"key", false, false}, {"auth", false, true}, {"secret_key_base", false, false},
	{"pw", true, true}, {"passwort", true, false}, {"kennwort", true, false}, {"contraseña", true, false}, {"senha", true, true}, {"mot de passe", true, false}, {"пароль", true, false}, {"Пароль", true, false},
	{"密码", true, false}, {"口令", true, false}, {"密碼", true, false}, {"パスワード", true, false}, {"비밀번호", true, false},
	{"psk", true, false}, {"identified by", true, false}, {"_password by", true, false},
	{"密钥", false, false}, {"令牌", false, false}, {"トークン", false, false}, {"シークレット", false, false}, {"キー", false, false},
}

// keyKinds are the words before "key" that make it a secret.
var keyKinds = []string{"api", "access", "secret", "private", "account", "shared", "sharedaccess", "encryption", "encrypt", "signing", "master", "auth", "subscription", "service", "license", "app", "admin", "deploy", "webhook", "storage", "jwt", "client"}

// harmless are beginnings of names of tokens that open nothing.
var harmless = []string{"page", "continuation", "next", "sync", "cursor", "cancellation", "design", "eos", "bos", "pad", "unk", "special", "stop", "mask", "sep", "cls", "previous", "prev", "resume"}

// tails may follow the keyword in a name of something secret.
var tails = []string{"prod", "production", "staging", "stage", "dev", "test", "live", "old", "new", "value", "base", "primary", "secondary", "data"}

// assignments finds what is assigned to names of secrets: in code, environment,
// configuration, command lines, markup and prose.
func (t *text) assignments() []span {
	var out []span
	for _, k := range keywords {
		judged := 0 // up to here, as a part of a long value
		t.each(k.word, func(start, end int) {
			if start < judged {
				return
			}
			a := assignment{text: t, keyword: k, start: start}
			defer func() {
				if a.end-a.begin >= maxJudged {
					judged = a.end
				}
			}()
			if v, ok := a.value(end); ok {
				mark := secretMark
				if k.strong {
					mark = passwordMark
				}
				out = append(out, span{v.start, v.end, mark})
			}
		})
	}
	return out
}

// assignment is what is known of one while its value is looked for.
type assignment struct {
	*text
	keyword
	start int // of the keyword
	name  int // where the name begins
	// shell tells that the value ends where a word of a shell does, and that what
	// stands there is no code.
	shell  bool
	quoted bool
	sep    string
	// begin and end are the bounds of the value.
	begin, end int
}

const (
	// maxName bounds the name of something, in bytes.
	maxName = 64
	// maxValue bounds a value, in bytes.
	maxValue = 4096
)

// value returns the part of the text that is secret, behind a keyword that ends
// at end.
func (a *assignment) value(end int) (span, bool) {
	a.name = a.start
	for a.name > 0 && a.name > a.start-maxName && (isURL(a.s[a.name-1]) || a.s[a.name-1] == '.') {
		a.name--
	}
	if strings.HasSuffix(a.s[:a.name], begin) || !a.named() {
		return span{}, false
	}
	end, ok := a.nameEnd(end)
	if !ok {
		return span{}, false
	}
	begin, ok := a.separator(end)
	if !ok {
		return span{}, false
	}
	begin, stop, ok := a.literal(begin)
	a.begin, a.end = begin, stop
	inAddress := a.sep == ":" && a.name > 0 && a.s[a.name-1] == ':' // arn:…:secret:name
	if !ok || inAddress || !a.secret(a.s[begin:stop], stop) {
		return span{}, false
	}
	return span{begin, stop, ""}, true
}

// named tells whether the name as a whole is one of something secret.
func (a *assignment) named() bool {
	head := strings.TrimRight(a.lower[a.name:a.start], "_-.")
	switch {
	case a.alone:
		return head == "" && !a.alnumBefore(a.start)
	case a.word == "key":
		return slices.ContainsFunc(keyKinds, func(kind string) bool { return strings.HasSuffix(head, kind) }) || strings.HasSuffix(a.lower[:a.start], "api ")
	case a.word == "token":
		return !slices.ContainsFunc(harmless, func(kind string) bool { return strings.HasSuffix(head, kind) })
	case a.word == "pwd":
		return !strings.HasSuffix(head, "old")
	}
	return true
}

func (a *assignment) alnumBefore(i int) bool { return i > 0 && isAlnum(a.s[i-1]) }

// nameEnd returns where a name ends whose keyword ends at i.
func (a *assignment) nameEnd(i int) (int, bool) {
	stop := i
	for stop < len(a.s) && stop < i+maxName && isURL(a.s[stop]) {
		stop++
	}
	if tail := strings.Trim(a.lower[i:stop], "_-"); tail != "" && strings.Trim(tail, "0123456789") != "" && !slices.Contains(tails, tail) {
		return i, a.word[0] >= utf8.RuneSelf // no space is between words in Chinese
	}
	return stop, true
}

// separator returns where the value begins, behind a name that ends at i.
func (a *assignment) separator(i int) (int, bool) {
	named := i
	for i < len(a.s) && i < named+3 && strings.IndexByte("\\\"'`])*", a.s[i]) >= 0 {
		i++
	}
	closed := i > named // the name was quoted
	i = a.blanks(i)
	spaced := i
	for _, sep := range []string{"===", "!==", "==", "!=", ":=", "=>", "?=", "=", ":", "："} {
		if strings.HasPrefix(a.s[i:], sep) {
			a.sep = sep
			begin := a.blanks(i + len(sep))
			if strings.HasPrefix(a.s[begin:], "** ") { // of a label in Markdown
				begin = a.blanks(begin + len("**"))
			}
			a.shell = sep == "=" && i == named && begin == i+1 && a.shellName()
			if sep == ":" || sep == "?=" {
				if typed, ok := a.typed(begin); ok {
					begin = typed
				}
			}
			return begin, true
		}
	}
	if begin, sep, ok := a.pair(i); ok {
		a.sep = sep
		return begin, true
	}
	rest := a.s[i:]
	switch {
	case rest == "":
		return 0, false
	case closed && rest[0] == ',', rest[0] == '(' && spaced == named:
		a.sep = rest[:1]
		return a.blanks(i + 1), true
	case rest[0] == '>' && a.name > 0 && a.s[a.name-1] == '<':
		a.sep = ">"
		return i + 1 + len(a.s[i+1:]) - len(strings.TrimLeft(a.s[i+1:], " \t\r\n")), true
	}
	if typed, ok := a.typed(i); ok && spaced > named && !closed {
		return typed, true
	}
	if spaced == named && !strings.HasSuffix(a.s[:named], a.word) {
		return 0, false
	}
	i = a.purpose(i)
	for _, verb := range verbs {
		if after, ok := strings.CutPrefix(a.lower[i:], verb); ok && (verb[0] >= utf8.RuneSelf || strings.HasPrefix(after, " ")) {
			a.sep = "is"
			if verb == "to" || verb == "—" || verb == "–" {
				a.sep = "to"
			}
			return a.blanks(len(a.s) - len(after)), true
		}
	}
	if spaced > named && (a.option() || a.set()) {
		a.sep, a.shell = "--", true
		return spaced, true
	}
	if a.word[0] >= utf8.RuneSelf && i < len(a.s) && a.s[i] < utf8.RuneSelf {
		a.sep = "is"
		return i, true
	}
	if spaced > named && !a.alone {
		a.sep = " "
		if a.s[spaced] == '(' {
			spaced++
		}
		return spaced, true
	}
	return 0, false
}

// verbs are what prose has between a password and its name, in lower case.
var verbs = []string{
	":", "is:", "is", "was", "to", "should be", "will be", "ist", "lautet", "es", "é", "est", "è", "—", "–", "是：", "是:", "是", "为：", "为", "为:", "は", "に", "は、", "는", "은", "이", "가",
}

// purpose skips what prose says of a password before it names it: "for staging".
func (a *assignment) purpose(i int) int {
	const longest = 40
	rest := a.lower[i:min(len(a.lower), i+longest)]
	for _, word := range []string{"for ", "of ", "on ", "to "} {
		if !strings.HasPrefix(rest, word) {
			continue
		}
		if n := strings.IndexAny(rest, ":\n.,;()\"'=<>"); n > 0 && strings.HasPrefix(rest[n:], ": ") {
			return i + n
		}
		if n := strings.Index(rest, " is "); n > 0 && !strings.ContainsAny(rest[:n], "\n.,;:()") {
			return i + n + 1
		}
	}
	return i
}

// option tells whether the name is a command's: --password.
func (a *assignment) option() bool {
	return strings.HasPrefix(a.s[a.name:], "--")
}

// pair returns where the value begins if the name is itself one: of an element
// with a value as its other attribute, of an entry with a name and a value, or
// of a property list; and what separates both.
func (a *assignment) pair(i int) (begin int, sep string, ok bool) {
	const longest = 80
	end := min(len(a.s), i+longest)
	rest := a.s[i:end]
	if element, isKey := strings.CutPrefix(rest, "</key>"); isKey {
		value, isString := strings.CutPrefix(strings.TrimLeft(element, " \t\r\n"), "<string>")
		return end - len(value), ">", isString
	}
	const name = "value"
	rest = strings.TrimLeft(rest, " \t\r\n,\"'\\")
	if len(rest) < len(name) || !strings.EqualFold(rest[:len(name)], name) {
		return 0, "", false
	}
	rest = strings.TrimLeft(rest[len(name):], " \"'\\")
	if rest == "" || rest[0] != ':' && rest[0] != '=' {
		return 0, "", false
	}
	return end - len(strings.TrimLeft(rest[1:], " ")), rest[:1], true
}

// set tells whether a name is one that a command sets in the environment.
func (a *assignment) set() bool {
	before := a.lower[max(0, a.name-len("set -gx ")):a.name]
	return slices.ContainsFunc([]string{"setx ", "set -gx ", "set -x ", "set -ux ", "setenv ", "env ", "arg "}, func(command string) bool { return strings.HasSuffix(before, command) }) &&
		strings.ToUpper(a.s[a.name:a.start+len(a.word)]) == a.s[a.name:a.start+len(a.word)]
}

// shellName tells whether the name stands where an environment, a command line,
// a connection string or an address has one.
func (a *assignment) shellName() bool {
	return a.name == 0 || strings.IndexByte(" \t\n;?&\"'`-=", a.s[a.name-1]) >= 0 || a.s[a.name-1] >= utf8.RuneSelf || a.option()
}

// blanks returns where a few blanks that begin at i end.
func (t *text) blanks(i int) int {
	const most = 40
	for n := 0; i < len(t.s) && (t.s[i] == ' ' || t.s[i] == '\t') && n < most; n++ {
		i++
	}
	return i
}

// typed skips a type between a name and the value that is assigned to it.
func (a *assignment) typed(i int) (int, bool) {
	stop := i
	for stop < len(a.s) && stop < i+40 && (isAlnum(a.s[stop]) || strings.IndexByte("_.<>[]&'*?|: ", a.s[stop]) >= 0) {
		stop++
	}
	if stop == i || stop >= len(a.s) || a.s[stop] != '=' {
		return 0, false
	}
	begin := a.blanks(stop + 1)
	return begin, begin < len(a.s) && strings.IndexByte("\"'`", a.s[begin]) >= 0
}

// literal returns the bounds of the value that begins at i, without quotes.
func (a *assignment) literal(i int) (begin, end int, ok bool) {
	for n := 0; n < 2 && i+1 < len(a.s) && strings.IndexByte("bfrRB@$", a.s[i]) >= 0 && strings.IndexByte("\"'", a.s[i+1]) >= 0; n++ {
		i++
	}
	for _, quote := range [][2]string{{`\"`, `\"`}, {`"`, `"`}, {`'`, `'`}, {"`", "`"}, {"“", "”"}, {"「", "」"}, {"‘", "’"}, {"**", "**"}} {
		if !strings.HasPrefix(a.s[i:], quote[0]) {
			continue
		}
		begin = i + len(quote[0])
		line, _, _ := strings.Cut(a.s[begin:min(len(a.s), begin+maxValue)], "\n")
		n := strings.Index(line, quote[1])
		if n < 0 {
			return 0, 0, false
		}
		a.quoted = true
		return begin, begin + n, true
	}
	if a.sep == "," || a.sep == "(" {
		return 0, 0, false
	}
	stops := "\"'`<>,;(){}[]|\\"
	if a.shell {
		stops = "\"'`<>;|"
		if a.name > 0 && strings.IndexByte("?&", a.s[a.name-1]) >= 0 {
			stops += "&#)"
		}
	}
	if a.sep == ">" {
		stops = "<"
	}
	end = i
	for end < len(a.s) && end < i+maxValue && a.s[end] > ' ' && a.s[end] < 0x7f && strings.IndexByte(stops, a.s[end]) < 0 && !a.nextAssignment(end) {
		end++
	}
	closing := ".,:"
	if a.sep == "is" {
		closing = ".,:!?"
	}
	for end > i && strings.IndexByte(closing, a.s[end-1]) >= 0 && !a.shell {
		end--
	}
	if a.shell && end > i && strings.IndexByte(",)", a.s[end-1]) >= 0 && !strings.ContainsAny(a.s[i:end-1], "!@#%^&*+~") {
		return 0, 0, false // an argument of a call
	}
	return i, end, end > i && (a.sep != ">" || strings.HasPrefix(strings.TrimLeft(a.s[end:], " \t\r\n"), "</"))
}

// nextAssignment tells whether the value ends at i because another assignment
// begins there, in an address (&b=), or in a string that goes on (\nb=).
func (a *assignment) nextAssignment(i int) bool {
	if !a.shell || a.s[i] != '&' && a.s[i] != '\\' {
		return false
	}
	if a.s[i] == '\\' {
		return i+1 < len(a.s) && strings.IndexByte("nrt", a.s[i+1]) >= 0
	}
	stop := i + 1
	for stop < len(a.s) && stop < i+maxName && isURL(a.s[stop]) {
		stop++
	}
	return stop > i+1 && stop < len(a.s) && a.s[stop] == '='
}

// secret tells whether a value that ends at end is the secret itself.
func (a *assignment) secret(v string, end int) bool {
	if isReference(v) || isPlaceholder(v) || !a.strong && strings.HasSuffix(lower(v), a.word) || strings.HasSuffix(lower(v), "_"+a.word) || !a.quoted && isCode(v) {
		return false
	}
	if a.sep == "to" || a.sep == " " && !(a.strong && (a.quoted || a.login())) {
		return a.strong && !a.alone && isMixed(v)
	}
	if a.quoted || a.shell || a.sep == ">" {
		if a.strong {
			return isPassword(v)
		}
		return isRandom(v)
	}
	code := end < len(a.s) && strings.IndexByte("([{\\`", a.s[end]) >= 0
	switch {
	case code:
		return false
	case a.sep == "is":
		return a.strong && isPassword(v) && !technical(v) && (!isWordy(v) || strings.ContainsAny(v, symbols) || a.ends(end)) || !a.strong && len(v) >= 16 && isRandom(v)
	case a.strong && a.ends(end) && !isPath(v):
		lineEnds := end == len(a.s) || strings.IndexByte("\r\n ", a.s[end]) >= 0
		return isPassword(v) && (!isName(v) || !isWordy(v) || (a.sep == ":" || a.sep == "：") && (lineEnds || !isIdentifier(v)))
	}
	return isRandom(v) && (!isName(v) || !isIdentifier(v) && (len(v) >= 16 || a.ends(end)))
}

// login tells whether the name follows that of a user, as in a netrc file.
func (a *assignment) login() bool {
	before := strings.Fields(a.lower[max(0, a.name-80):a.name])
	return len(before) >= 2 && before[len(before)-2] == "login"
}

// ends tells whether nothing of a clause follows at i.
func (a *assignment) ends(i int) bool {
	rest := strings.TrimLeft(a.s[i:], ".!?")
	r, _ := utf8.DecodeRuneInString(rest)
	for _, aside := range []string{" (", " #", " //", " /*"} {
		if strings.HasPrefix(rest, aside) {
			return true
		}
	}
	return rest == "" || strings.ContainsRune("\n\r\"'`）)。，、！；", r) || len(rest) < len(a.s[i:]) && r == ' ' || strings.HasPrefix(rest, ", ")
}

// isName tells identifiers and what is reached through them.
func isName(v string) bool {
	return !isDigit(v[0]) && strings.IndexFunc(v, func(r rune) bool { return r >= utf8.RuneSelf || !dotted.has(byte(r)) }) < 0
}

// isIdentifier tells names in which words make up more than a half: camelCase
// with digits between its words.
func isIdentifier(v string) bool { return 2*inWords(v, 3) > len(v) && lower(v) != v }

// inWords counts the characters of words: of so many small letters at least, and
// what each begins with.
func inWords(v string, least int) int {
	words, n := 0, 0
	for i := range len(v) + 1 {
		if i < len(v) && isLower(v[i]) {
			n++
			continue
		}
		if n >= least {
			words += n + 1
		}
		n = 0
	}
	return words
}

// isCode tells numbers, names with a dollar sign, indexes and calls.
func isCode(v string) bool {
	if strings.HasPrefix(strings.TrimPrefix(v, "-"), "0x") && len(v) < 40 {
		return true
	}
	if strings.IndexByte(v, '$') >= 0 && isIdentifier(v) {
		return true
	}
	i := strings.IndexAny(v, "[(=")
	return i > 0 && isName(v[:i]) && isWordy(v[:i]) && (v[i] == '=' && i+1 < len(v) && isLetter(v[i+1]) && strings.Count(v, "=") > 1 || strings.IndexByte("])", v[len(v)-1]) >= 0)
}

// isPath tells paths, addresses and names of files.
func isPath(v string) bool {
	if strings.HasPrefix(v, "/") || strings.HasPrefix(v, "./") || strings.HasPrefix(v, "../") || strings.HasPrefix(v, "~/") || strings.Contains(v, "://") || strings.HasPrefix(v, `C:\`) {
		return true
	}
	i := strings.LastIndexByte(v, '.')
	return i > 0 && slices.Contains([]string{"json", "pem", "key", "txt", "yaml", "yml", "toml", "go", "py", "js", "ts", "rs", "java", "rb", "md", "crt", "env", "com", "org", "io"}, v[i+1:])
}

// isReference tells what only points to a secret: a variable, a template, a
// path, a hash.
func isReference(v string) bool {
	switch {
	case len(v) < 6 || isPath(v):
		return true
	case strings.IndexByte("$%{<&[(*\"'`", v[0]) >= 0:
		return true
	}
	for _, sign := range []string{"${", "{{", "$(", "<", "[redacted", "ENC[", "process.env", "os.environ", "getenv", "secretKeyRef", "sha256:", "arn:", "%s", "%v", `\u`, `\x`, "&&", "||", "?.", "secrets.", "#{"} {
		if strings.Contains(v, sign) {
			return true
		}
	}
	return strings.IndexFunc(v, func(r rune) bool { return r <= ' ' || r >= utf8.RuneSelf }) >= 0 || strings.Contains(v, "()")
}

const symbols = "!@#$%^&*+=?~"

// isPassword tells what people choose as a password from a word: letters and
// digits or symbols, or many digits.
func isPassword(v string) bool {
	if len(v) < 6 || isReference(v) || isPlaceholder(v) || isWordy(v) && strings.ContainsAny(v, "|:;,/") {
		return false
	}
	letters := strings.ContainsFunc(v, func(r rune) bool { return r < utf8.RuneSelf && isLetter(byte(r)) })
	digits := strings.ContainsAny(v, "0123456789")
	return digits && letters || isScrambled(v) || letters && strings.ContainsAny(v, symbols) || digits && strings.Trim(v, "0123456789") == ""
}

// isRandom tells what a machine made.
func isRandom(v string) bool {
	if len(v) < 8 || isWordy(v) || distinct(v) < 6 || len(v) < 24 && strings.IndexByte(v, '$') >= 0 {
		return false
	}
	return strings.ContainsAny(v, "0123456789") && strings.ContainsFunc(v, func(r rune) bool { return r < utf8.RuneSelf && isLetter(byte(r)) })
}

// isMixed tells a password that needs no word before it that says so: of capital
// and small letters, digits and symbols, or three of them and as long as no
// name.
func isMixed(v string) bool {
	kinds := 0
	for _, in := range []func(rune) bool{unicode.IsUpper, unicode.IsLower, unicode.IsDigit, func(r rune) bool { return strings.ContainsRune("!@#$%^&*+?~", r) }} {
		if strings.ContainsFunc(v, in) {
			kinds++
		}
	}
	return isPassword(v) && !isPath(v) && len(v) >= 8 && (kinds == 4 || kinds == 3 && !isWordy(v) && !isIdentifier(v) && !technical(v))
}

// technical tells words with digits that are said of passwords and are none.
func technical(v string) bool {
	low := lower(v)
	return slices.ContainsFunc([]string{"base64", "sha", "md5", "argon2", "oauth", "utf", "bcrypt", "scrypt", "pbkdf2", "http", "x509", "ed25519", "aes", "1password", "rfc", "ipv", "hs256", "rs256"}, func(w string) bool { return strings.HasPrefix(low, w) })
}
