package redact

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestText has what the labelled set cannot show: the edges of each rule.
func TestText(t *testing.T) {
	t.Parallel()
	key := "sk-" + "ant-api03-9fK2mQ7xLr4vTz8wBn5cYd1gHj6pSs3e"
	line := "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ7"
	block := "-----BEGIN RSA PRIVATE KEY-----\n" + line + "\n-----END RSA PRIVATE KEY-----"
	for in, want := range map[string]string{
		"":                                    "",
		key:                                   "[redacted api-key]",
		key + " and " + key:                   "[redacted api-key] and [redacted api-key]",
		"密钥" + key + "。":                      "密钥[redacted api-key]。",
		`\n` + key + `\n`:                     `\n[redacted api-key]\n`,
		"x" + key:                             "x" + key,
		"use " + key + ".":                    "use [redacted api-key].",
		"api_key=" + key:                      "api_key=[redacted api-key]",
		"password=[redacted api-key]":         "password=[redacted api-key]",
		"Authorization: Bearer " + key:        "Authorization: Bearer [redacted api-key]",
		"a " + block + " b":                   "a [redacted private-key] b",
		strings.ReplaceAll(block, "\n", `\n`): "[redacted private-key]",
		"cut: " + block[:76] + "\nThen it — stopped":     "cut: [redacted private-key]" + "\nThen it — stopped",
		"a <private>b\nc</private> d":                    "a [redacted private] d",
		"a <private>" + key + "</private> d":             "a [redacted private] d",
		"<private>never closed":                          Private,
		"<private><private>x</private>y</private>z":      Private + "z",
		"</private> x":                                   "</private> x",
		"`<private>` is a tag":                           "`<private>` is a tag",
		"postgres://app:hunter2@db:5432/x":               "postgres://app:[redacted password]@db:5432/x",
		"postgres://app:p#ss/w0rd@db/x":                  "postgres://app:[redacted password]@db/x",
		"https://example.com:8080/a@b":                   "https://example.com:8080/a@b",
		"DB_PASSWORD=correct4horse":                      "DB_PASSWORD=[redacted password]",
		"f(password=password1)":                          "f(password=password1)",
		`f(password="correct4horse")`:                    `f(password="[redacted password]")`,
		`{"api_key": "q1w2e3r4t5"}`:                      `{"api_key": "[redacted secret]"}`,
		"?token=q1w2e3r4t5&x=1":                          "?token=[redacted secret]&x=1",
		"token=q1w2e3r4t5&x=1":                           "token=[redacted secret]&x=1",
		"pass: Winter2025!":                              "pass: [redacted password]",
		"mysql -uroot -pWinter2025! app":                 "mysql -uroot -p[redacted password] app",
		"docker run -p 8080:8080 x":                      "docker run -p 8080:8080 x",
		"curl -k \\\n -u a:hunter2 https://x":            "curl -k \\\n -u a:[redacted password] https://x",
		"Set-Cookie: sid=38afes7a8d9f0b1c2e3d; HttpOnly": "Set-Cookie: sid=[redacted cookie]; HttpOnly",
		"--from-literal=password=Winter2025!":            "--from-literal=password=[redacted password]",
		"password: hunter2 (changed)":                    "password: [redacted password] (changed)",
		"Passwort: Sommer2024!":                          "Passwort: [redacted password]",
		"password = getPassword(user)":                   "password = getPassword(user)",
		"the password: hunter2, then":                    "the password: [redacted password], then",
		"\xff\xfe password=hunter2\xff":                  "\xff\xfe password=[redacted password]\xff",
	} {
		if got := Text(in); got != want {
			t.Errorf("Text(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, name := range []string{"tuning", "heldout"} {
		for _, s := range corpus(f, name) {
			f.Add(s.in)
		}
	}
	f.Fuzz(func(t *testing.T, in string) {
		out := Text(in)
		if again := Text(out); again != out {
			t.Errorf("%q became %q, then %q", in, out, again)
		}
		if marks := strings.Count(out, begin) - strings.Count(in, begin); len(out) > len(in)+marks*len("[redacted planetscale-password]") {
			t.Errorf("%d bytes became %d", len(in), len(out))
		}
		if utf8.ValidString(in) && !utf8.ValidString(out) {
			t.Errorf("%q became invalid", in)
		}
	})
}

// BenchmarkText redacts turns of 10 kB: prose, and one made of the labelled set,
// which is full of secrets.
func BenchmarkText(b *testing.B) {
	var dense strings.Builder
	for _, s := range corpus(b, "tuning") {
		dense.WriteString(s.in + "\n")
	}
	for name, text := range map[string]string{
		"prose": strings.Repeat("The deploy of the parser failed because the token expired, see config/app.yaml:12.\n", 124),
		"dense": strings.ToValidUTF8(dense.String()[:10<<10], ""),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				Text(text)
			}
		})
	}
}

// TestHostile has texts of which a careless scanner takes a pass for each
// character: seconds, here.
func TestHostile(t *testing.T) {
	t.Parallel()
	for _, part := range []string{
		"sk-", "ghp_", "eyJ.", "eyJ", "password=", "token", "token=", `token="`, "key:", "://", "://a:", "a://a:b@", "bearer", "bearer ", "authorization:",
		"-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "<private>", "</private>", " -u", "&sig=", "q~", ":aa", "1", "密码是", "<token>", "password for ", "hooks.slack.com/services/",
		"password is ", "cookie:", "cookie:a=", "curl ", "curl -u ", "mysql -p", "\\", "'", "=", "api key ",
		".atlasv1.", "-us1", "A.", "A.BBBBBB.", "@tcp(", "a:b@tcp(", "mnemonic ", "mnemonic a ", "basic ", "basic YTpi", " -b ", " -b a=", "password value=", "token</key>", "setx ", "密码a", "to ", "password to ",
	} {
		text := strings.Repeat(part, (1<<18)/len(part))
		if out := Text(text); Text(out) != out {
			t.Errorf("%q, repeated, is not idempotent", part)
		}
	}
}

// TestTriples: what is told to be in no text is in none, wherever it stands.
func TestTriples(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"pw", "key", "://", "密码", "пароль", "authorization: basic", "-----begin "} {
		for _, around := range []string{"", "x", "  ", "a longer one"} {
			if text := newText(around + word + around); !text.triples.mayHave(word) {
				t.Errorf("%q is in %q", word, text.s)
			}
		}
		if word != "pw" && newText("nothing of it").triples.mayHave(word) {
			t.Errorf("%q is looked for in vain", word)
		}
	}
}
