package redact

import (
	encoding "encoding/base64"
	"slices"
	"strings"
	"unicode/utf8"
)

// minKeyLine is the least length of a line of base64 in a real private key.
const minKeyLine = 40

// maxLabel bounds the name of a PEM block with the dashes behind it.
const maxLabel = 48

// privateKeys finds PEM and PGP blocks, also escaped ones and those that are cut
// off. The lines around nothing that could be a key stay.
func (t *text) privateKeys() []span {
	const dashes = "-----"
	var out []span
	t.each(dashes+"begin ", func(start, end int) {
		label, _, ok := strings.Cut(t.s[end:min(len(t.s), end+maxLabel)], dashes)
		if !ok || !strings.HasSuffix(label, "PRIVATE KEY") && !strings.HasSuffix(label, "PRIVATE KEY BLOCK") {
			return
		}
		body := end + len(label) + len(dashes)
		footer := dashes + "END " + label + dashes
		stop := body
		for stop < len(t.s) && keyChar(t.s[stop]) {
			stop++
		}
		if strings.HasPrefix(t.s[stop:], footer) {
			stop += len(footer)
		} else {
			stop = body + lastLine(t.s[body:stop])
		}
		if longestRun(t.s[body:stop], isKeyLine) >= minKeyLine {
			out = append(out, span{start, stop, "private-key"})
		}
	})
	return out
}

// lastLine returns where the last piece of base64 in a key that is cut off ends.
func lastLine(s string) int {
	const shortest = 16 // no word of the text behind the key is as long
	end, n := 0, 0
	for i := range len(s) {
		if n++; !isKeyLine(s[i]) {
			n = 0
		}
		if n >= shortest {
			end = i + 1
		}
	}
	return end
}

func isKeyLine(c byte) bool { return isAlnum(c) || c == '+' || c == '/' }

// keyChar tells what may be between the lines BEGIN and END: base64, line ends,
// also escaped, headers, and what joins lines in code.
func keyChar(c byte) bool {
	return isAlnum(c) || strings.IndexByte("+/= \t\r\n\\\"'`,:;|>.#()", c) >= 0
}

// webTokens finds JSON web tokens, and tokens of bots that have a form but no
// beginning of their own.
func (t *text) webTokens() []span {
	var out []span
	for pos := 0; ; {
		i := strings.Index(t.s[pos:], "eyJ")
		if i < 0 {
			break
		}
		start := pos + i
		pos = start + len("eyJ")
		if !t.wordBegins(start) {
			continue
		}
		end := t.run(start, dotted)
		pos = max(pos, end)
		parts := strings.Split(t.s[start:end], ".")
		if len(parts) >= 2 && len(parts) <= 5 && len(parts[0]) >= 16 && (strings.HasPrefix(parts[1], "eyJ") && len(parts[1]) >= 16 || len(parts) == 5 && len(parts[4]) >= 16) {
			out = append(out, span{start, end, "jwt"})
		}
	}
	for _, m := range middles {
		t.each(lower(m.middle), func(start, end int) {
			first := start
			for first > 0 && start-first < m.most && m.before.has(t.s[first-1]) {
				first--
			}
			last := t.run(end, m.after)
			begins := first == 0 || !m.before.has(t.s[first-1]) || t.wordBegins(first)
			if begins && start-first >= m.least && t.s[start:end] == m.middle && last-end >= m.min && last-end <= m.max && !t.goesOn(last) && !isPlaceholder(t.s[end:last]) {
				out = append(out, span{first, last, m.mark})
			}
		})
	}
	return slices.Concat(out, t.botTokens(), t.phrases())
}

// middle is a form of credential that is told by what it has in its middle.
type middle struct {
	mark        string
	middle      string
	before      charset
	least, most int // the number of characters before the middle
	after       charset
	min, max    int // the number of characters behind it
}

var middles = []middle{
	{"azure-secret", "Q~", alnum, 4, 4, base64, 31, 34},
	{"telegram-token", ":AA", digits, 8, 10, urlsafe, 33, 33},
	{"terraform-token", ".atlasv1.", alnum, 14, 14, urlsafe, 60, 70},
	{"mailchimp-key", "-us", hex, 32, 32, digits, 1, 2},
}

// botTokens finds those of Discord: the number of the bot in base64, a time, and
// what signs them.
func (t *text) botTokens() []span {
	var out []span
	for pos := 0; ; {
		i := strings.IndexByte(t.s[pos:], '.')
		if i < 0 {
			return out
		}
		dot := pos + i
		pos = dot + 1
		const second = 6
		if dot+second+1 >= len(t.s) || t.s[dot+second+1] != '.' {
			continue
		}
		first := dot
		for first > 0 && dot-first < 28 && isURL(t.s[first-1]) {
			first--
		}
		if number, err := encoding.RawURLEncoding.DecodeString(t.s[first:dot]); err != nil || len(number) < 17 || strings.Trim(string(number), "0123456789") != "" || !t.wordBegins(first) {
			continue
		}
		if last := t.run(dot+second+2, urlsafe); last-dot >= second+2+27 {
			out = append(out, span{first, last, "discord-token"})
		}
	}
}

// phrases finds the words that a wallet is made of again: twelve or more behind
// what says so.
func (t *text) phrases() []span {
	const least, most = 12, 24
	var out []span
	for _, name := range []string{"mnemonic", "seed phrase", "seed_phrase", "recovery phrase", "助记词"} {
		t.each(name, func(_, end int) {
			begin := end
			for begin < len(t.s) && begin < end+8 && strings.IndexByte(" \"'=:", t.s[begin]) >= 0 {
				begin++
			}
			words, last, stop := 0, begin, begin
			for words < most {
				for stop < len(t.s) && isLower(t.s[stop]) {
					stop++
				}
				if n := stop - last; n < 3 || n > 8 {
					break
				}
				words++
				if stop == len(t.s) || t.s[stop] != ' ' {
					last = stop + 1
					break
				}
				stop++
				last = stop
			}
			if words >= least {
				out = append(out, span{begin, last - 1, "seed-phrase"})
			}
		})
	}
	return out
}

// webhooks are addresses whose last parts are a secret.
var webhooks = []string{"hooks.slack.com/services/", "hooks.slack.com/workflows/", "hooks.slack.com/triggers/", "discord.com/api/webhooks/", "discordapp.com/api/webhooks/", "webhook.office.com/webhookb2/", "oapi.dingtalk.com/robot/send?access_token=", "open.feishu.cn/open-apis/bot/v2/hook/", "qyapi.weixin.qq.com/cgi-bin/webhook/send?key="}

// signatures are parameters of addresses that are good for whoever has them.
var signatures = []string{"sig=", "signature=", "x-amz-signature=", "x-goog-signature="}

// urls finds passwords and other secrets in addresses.
func (t *text) urls() []span {
	var out []span
	stop := 0
	t.each("://", func(start, end int) {
		for stop = max(stop, end); stop < len(t.s) && t.s[stop] > ' ' && t.s[stop] < 0x7f && strings.IndexByte("\"'`<>\\", t.s[stop]) < 0; stop++ {
		}
		authority := t.s[end:min(stop, end+maxValue)]
		if i := strings.IndexAny(authority, "/?#"); i >= 0 && (strings.IndexByte(authority[:i], '@') >= 0 || strings.IndexByte(authority[i:], '@') < 0 || !oddPassword(authority, i)) {
			authority = authority[:i]
		}
		at := strings.LastIndexByte(authority, '@')
		if at < 0 {
			return
		}
		user, password, ok := strings.Cut(authority[:at], ":")
		if ok && start > 0 && isAlnum(t.s[start-1]) && user != password && isURLPassword(password) {
			out = append(out, span{end + len(user) + 1, end + at, passwordMark})
		}
	})
	for _, network := range []string{"@tcp(", "@unix("} { // user:password@tcp(host)/name, as Go's driver of MySQL has it
		t.each(network, func(at, _ int) {
			begin := at
			for begin > 0 && at-begin < maxName && t.s[begin-1] > ' ' && t.s[begin-1] < 0x7f && strings.IndexByte("\"'`=,", t.s[begin-1]) < 0 {
				begin--
			}
			user, password, ok := strings.Cut(t.s[begin:at], ":")
			if ok && user != "" && user != password && isURLPassword(password) {
				out = append(out, span{begin + len(user) + 1, at, passwordMark})
			}
		})
	}
	for _, w := range webhooks {
		t.each(w, func(_, end int) {
			stop := end
			for stop < len(t.s) && stop < end+maxJudged && (base64.has(t.s[stop]) || t.s[stop] == '@') {
				stop++
			}
			if longestRun(t.s[end:stop], isURL) >= 20 && !isPlaceholder(t.s[end:stop]) {
				out = append(out, span{end, stop, "webhook"})
			}
		})
	}
	for _, name := range signatures {
		t.each(name, func(start, end int) {
			stop := end
			for stop < len(t.s) && stop < end+maxValue && (base64.has(t.s[stop]) || t.s[stop] == '%') {
				stop++
			}
			if start > 0 && (t.s[start-1] == '&' || t.s[start-1] == '?') && stop-end >= 32 && !isPlaceholder(t.s[end:stop]) {
				out = append(out, span{end, stop, "signature"})
			}
		})
	}
	return out
}

// oddPassword tells whether an address whose first delimiter is at i has a
// password with that delimiter in it, not a port and a path.
func oddPassword(s string, i int) bool {
	_, port, ok := strings.Cut(s[:i], ":")
	return ok && port != "" && strings.Trim(port, "0123456789") != ""
}

func isURLPassword(p string) bool {
	switch lower(p) {
	case "password", "passwd", "pass", "pwd", "secret", "token", "pw":
		return false
	}
	variable := false
	for i := range len(p) - 1 {
		variable = variable || p[i] == '$' && (i == 0 || isLetter(p[i+1]) || p[i+1] == '_')
	}
	return len(p) >= 3 && !variable && !strings.ContainsAny(p, "{}()*[],;|") && !isPlaceholder(p) && !strings.HasPrefix(p, "%s") && !strings.HasPrefix(p, "%v")
}

// maxScheme bounds the name of a scheme of authorization with what follows it.
const maxScheme = 12

// headers finds what authorizes a request.
func (t *text) headers() []span {
	var out []span
	add := func(mark string, least int, ok func(v string) bool) func(int, int) {
		return func(start, end int) {
			begin := t.blanks(end)
			stop := t.run(begin, base64)
			if next := t.blanks(stop); next > stop && next < begin+maxScheme { // a scheme of its own
				begin, stop = next, t.run(next, base64)
			}
			if v := t.s[begin:min(stop, begin+maxJudged)]; begin > end && (start == 0 || !isAlnum(t.s[start-1])) && len(v) >= least && !isPlaceholder(v) && ok(v) && !strings.HasPrefix(t.s[stop:], "(") {
				out = append(out, span{begin, stop, mark})
			}
		}
	}
	random := func(v string) bool { return isRandom(v) && strings.IndexByte(v, '/') != 0 }
	t.each("bearer", add("bearer", 16, random))
	t.each("basic", add("basic-auth", 8, isBasic))
	t.each("authorization:", add("bearer", 20, random))
	return out
}

// isBasic tells the name of a user and a password, in base64.
func isBasic(v string) bool {
	pair, err := encoding.RawStdEncoding.DecodeString(strings.TrimRight(v, "="))
	user, password, ok := strings.Cut(string(pair), ":")
	return err == nil && ok && user != password && isURLPassword(password) && !slices.Contains([]string{"opensesame", "open sesame"}, password) &&
		strings.IndexFunc(string(pair), func(r rune) bool { return r < ' ' || r == utf8.RuneError }) < 0
}

// cookies finds what identifies a session in the headers that carry it.
func (t *text) cookies() []span {
	var out []span
	done := 0
	line := func(_, end int) {
		if end < done {
			return
		}
		line, _, _ := strings.Cut(t.s[end:min(len(t.s), end+maxValue)], "\n")
		done = end + len(line)
		for begin := end; begin < done; {
			i := strings.IndexByte(t.s[begin:done], '=')
			if i < 0 {
				return
			}
			begin += i + 1
			stop := begin
			for stop < done && (base64.has(t.s[stop]) || t.s[stop] == '%') {
				stop++
			}
			if v := t.s[begin:min(stop, begin+maxJudged)]; len(v) >= 16 && isRandom(v) && !isPlaceholder(v) {
				out = append(out, span{begin, stop, "cookie"})
			}
			begin = stop
		}
	}
	for _, name := range []string{"cookie:", "cookie\":", "cookie':", "--cookie ", " -b "} {
		done = 0
		t.each(name, line)
	}
	return out
}

// passwordOptions are options of commands that take a password, which may follow
// the name of a user and a colon.
var passwordOptions = []struct {
	command, option string
	user            bool
}{
	{"curl ", " -u", true}, {"curl ", " --user", true}, {"sshpass ", " -p", false}, {"mysql ", " -p", false}, {"mysqldump ", " -p", false},
	{"mysqladmin ", " -p", false}, {"mariadb ", " -p", false}, {"mongosh ", " -p", false}, {"mongodump ", " -p", false}, {"mongorestore ", " -p", false},
	{"docker login ", " -p", false}, {"podman login ", " -p", false}, {"nerdctl login ", " -p", false}, {"helm registry login ", " -p", false},
	{"oc login ", " -p", false}, {"az login ", " -p", false}, {"redis-cli ", " -a", false}, {"ldapsearch ", " -w", false}, {"sqlcmd ", " -P", false},
	{"zip ", " -P", false}, {"mosquitto_pub ", " -P", false}, {"mosquitto_sub ", " -P", false}, {"openssl ", " pass:", false},
	{"keytool ", " -storepass", false}, {"keytool ", " -keypass", false}, {"ssh-keygen ", " -N", false},
	{"convertto-securestring ", " ", false}, {"convertto-securestring ", " -String", false},
}

// options finds passwords on command lines.
func (t *text) options() []span {
	const longest = 400 // of a command, with continued lines
	var out []span
	for _, o := range passwordOptions {
		t.each(o.command, func(_, end int) {
			command := t.s[end-1 : min(len(t.s), end+longest)]
			command, _, _ = strings.Cut(strings.ReplaceAll(command, "\\\n", "  "), "\n")
			_, value, ok := strings.Cut(command, o.option)
			if !ok {
				return
			}
			value = strings.TrimLeft(value, " ='\"")
			begin := end - 1 + len(command) - len(value)
			if i := strings.IndexFunc(value, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune("'\"`", r) }); i >= 0 {
				value = value[:i]
			}
			if o.user {
				user, password, ok := strings.Cut(value, ":")
				if !ok || user == "" || strings.Contains(value, "/") {
					return
				}
				begin, value = begin+len(user)+1, password
			}
			if isPassword(value) {
				out = append(out, span{begin, begin + len(value), passwordMark})
			}
		})
	}
	return out
}
