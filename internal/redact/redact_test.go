package redact

import (
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	t.Parallel()
	a := func(n int) string { return strings.Repeat("aB3", n)[:n] }
	for in, want := range map[string]string{
		"key sk-proj-" + a(40) + " end":              "key [redacted api-key] end",
		"sk-ant-api03-" + a(60):                      "[redacted api-key]",
		"sk_live_" + a(24):                           "[redacted api-key]",
		"ghp_" + a(36):                               "[redacted github-token]",
		"github_pat_" + a(40):                        "[redacted github-token]",
		"glpat-" + a(20):                             "[redacted gitlab-token]",
		"xoxb-" + a(20):                              "[redacted slack-token]",
		"AKIA" + strings.Repeat("Q2", 8):             "[redacted aws-key]",
		"AIza" + a(35):                               "[redacted google-key]",
		"npm_" + a(36):                               "[redacted npm-token]",
		"eyJ" + a(20) + ".eyJ" + a(20) + "." + a(20): "[redacted jwt]",
		"Authorization: Bearer " + a(30):             "Authorization: Bearer [redacted bearer]",
		"postgres://app:hunter2@db:5432/x":           "postgres://app:[redacted password]@db:5432/x",
		"DB_PASSWORD=correct4horse":                  "DB_PASSWORD=[redacted password]",
		`{"api_key": "q1w2e3r4t5"}`:                  `{"api_key": "[redacted password]"}`,
		"-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----": "[redacted private-key]",
		"-----BEGIN OPENSSH PRIVATE KEY-----\ncut off":                         "[redacted private-key]",
		"a <private>b\nc</private> d":                                          "a [redacted private] d",
		"<private>never closed":                                                Private,

		// What only looks like a secret stays.
		"password = getPassword(user)":                               "password = getPassword(user)",
		"password: string;":                                          "password: string;",
		"the token is invalid":                                       "the token is invalid",
		"postgres://app:$PASSWORD@db":                                "postgres://app:$PASSWORD@db",
		"https://example.com:8080/a@b":                               "https://example.com:8080/a@b",
		"commit 3f786850e387550fdab836ed7e6dc881de23001b":            "commit 3f786850e387550fdab836ed7e6dc881de23001b",
		"01a22900-eb58-7bc0-8524-0907451b86ad":                       "01a22900-eb58-7bc0-8524-0907451b86ad",
		"sk-learn and task-force":                                    "sk-learn and task-force",
		"-----BEGIN PUBLIC KEY-----\nMIIE\n-----END PUBLIC KEY-----": "-----BEGIN PUBLIC KEY-----\nMIIE\n-----END PUBLIC KEY-----",
		"": "",
	} {
		got := Text(in)
		if got != want {
			t.Errorf("Text(%q) = %q, want %q", in, got, want)
		}
		if again := Text(got); again != got {
			t.Errorf("not idempotent: %q, then %q", got, again)
		}
	}
}

func BenchmarkText(b *testing.B) {
	text := strings.Repeat("The deploy of the parser failed because the token expired, see config/app.yaml:12.\n", 120)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Text(text)
	}
}
