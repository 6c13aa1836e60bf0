package redact

import (
	"strings"
	"sync"
)

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLetter(c byte) bool { return isUpper(c) || isLower(c) }
func isAlnum(c byte) bool  { return isLetter(c) || isDigit(c) }
func isURL(c byte) bool    { return isAlnum(c) || c == '-' || c == '_' }
func isDotted(c byte) bool { return isURL(c) || c == '.' }
func isCaps(c byte) bool   { return isUpper(c) || isDigit(c) }
func isHex(c byte) bool    { return isDigit(c) || 'a' <= c && c <= 'f' }

// isBase64 tells the characters of a value as headers and keys have it.
func isBase64(c byte) bool { return isDotted(c) || strings.IndexByte("+/=~", c) >= 0 }

// token is a form of credential that is told by how it begins.
type token struct {
	mark     string
	prefix   string
	in       func(byte) bool // the characters after the prefix
	min, max int             // their number; max is 0 if there is no limit
}

var knownTokens = []token{
	{"api-key", "sk-", isURL, 20, 0},
	{"api-key", "xai-", isAlnum, 60, 100},
	{"api-key", "gsk_", isAlnum, 40, 64},
	{"api-key", "pplx-", isAlnum, 40, 64},
	{"api-key", "r8_", isAlnum, 36, 42},
	{"api-key", "nvapi-", isURL, 60, 80},
	{"api-key", "tvly-", isURL, 24, 80},
	{"api-key", "jina_", isURL, 50, 80},
	{"api-key", "fw_", isAlnum, 20, 40},
	{"api-key", "fc-", isHex, 32, 32},
	{"api-key", "e2b_", isHex, 40, 40},
	{"api-key", "lsv2_pt_", isURL, 32, 64},
	{"api-key", "lsv2_sk_", isURL, 32, 64},
	{"huggingface-token", "hf_", isAlnum, 30, 40},
	{"huggingface-token", "api_org_", isAlnum, 30, 40},
	{"stripe-key", "sk_live_", isAlnum, 16, 0},
	{"stripe-key", "sk_test_", isAlnum, 16, 0},
	{"stripe-key", "rk_live_", isAlnum, 16, 0},
	{"stripe-key", "rk_test_", isAlnum, 16, 0},
	{"stripe-key", "sk_prod_", isAlnum, 16, 0},
	{"stripe-key", "rk_prod_", isAlnum, 16, 0},
	{"stripe-key", "whsec_", isBase64, 24, 0},
	{"github-token", "ghp_", isAlnum, 30, 0},
	{"github-token", "gho_", isAlnum, 30, 0},
	{"github-token", "ghu_", isAlnum, 30, 0},
	{"github-token", "ghs_", isAlnum, 30, 0},
	{"github-token", "ghr_", isAlnum, 30, 0},
	{"github-token", "github_pat_", isURL, 30, 0},
	{"gitlab-token", "glpat-", isDotted, 20, 0},
	{"gitlab-token", "gldt-", isURL, 20, 0},
	{"gitlab-token", "glrt-", isDotted, 20, 0},
	{"gitlab-token", "glptt-", isURL, 20, 0},
	{"gitlab-token", "glcbt-", isURL, 20, 0},
	{"gitlab-token", "glft-", isURL, 20, 0},
	{"gitlab-token", "glsoat-", isURL, 20, 0},
	{"gitlab-token", "glimt-", isURL, 20, 0},
	{"gitlab-token", "glagent-", isURL, 20, 0},
	{"gitlab-token", "gloas-", isURL, 20, 0},
	{"gitlab-token", "glffct-", isURL, 20, 0},
	{"gitlab-token", "GR1348941", isURL, 20, 20},
	{"slack-token", "xoxb-", isURL, 20, 0},
	{"slack-token", "xoxp-", isURL, 20, 0},
	{"slack-token", "xoxa-", isURL, 20, 0},
	{"slack-token", "xoxr-", isURL, 20, 0},
	{"slack-token", "xoxs-", isURL, 20, 0},
	{"slack-token", "xoxc-", isURL, 20, 0},
	{"slack-token", "xoxd-", isBase64, 20, 0},
	{"slack-token", "xoxe-", isURL, 20, 0},
	{"slack-token", "xoxe.xox", isURL, 20, 0},
	{"slack-token", "xapp-", isURL, 20, 0},
	{"aws-key", "AKIA", isCaps, 16, 16},
	{"aws-key", "ASIA", isCaps, 16, 16},
	{"aws-key", "ABIA", isCaps, 16, 16},
	{"aws-key", "ACCA", isCaps, 16, 16},
	{"aws-key", "ABSK", isBase64, 100, 0},
	{"alibaba-key", "LTAI", isAlnum, 16, 20},
	{"tencent-key", "AKID", isAlnum, 32, 32},
	{"google-key", "AIza", isURL, 35, 35},
	{"google-token", "ya29.", isURL, 30, 0},
	{"google-token", "1//0", isURL, 40, 0},
	{"google-secret", "GOCSPX-", isURL, 28, 28},
	{"npm-token", "npm_", isAlnum, 36, 36},
	{"pypi-token", "pypi-", isURL, 50, 0},
	{"rubygems-token", "rubygems_", isHex, 48, 48},
	{"docker-token", "dckr_pat_", isURL, 24, 40},
	{"docker-token", "dckr_oat_", isURL, 24, 40},
	{"digitalocean-token", "dop_v1_", isHex, 64, 64},
	{"digitalocean-token", "doo_v1_", isHex, 64, 64},
	{"digitalocean-token", "dor_v1_", isHex, 64, 64},
	{"shopify-token", "shpat_", isAlnum, 32, 32},
	{"shopify-token", "shpss_", isAlnum, 32, 32},
	{"shopify-token", "shpca_", isAlnum, 32, 32},
	{"shopify-token", "shppa_", isAlnum, 32, 32},
	{"sendgrid-key", "SG.", isDotted, 60, 70},
	{"mailgun-key", "key-", isHex, 32, 32},
	{"vault-token", "hvs.", isURL, 24, 0},
	{"vault-token", "hvb.", isURL, 24, 0},
	{"vault-token", "hvr.", isURL, 24, 0},
	{"atlassian-token", "ATATT3x", isBase64, 60, 0},
	{"atlassian-token", "ATCTT3x", isBase64, 60, 0},
	{"atlassian-token", "ATBB", isAlnum, 32, 32},
	{"linear-key", "lin_api_", isAlnum, 40, 40},
	{"notion-token", "ntn_", isAlnum, 40, 50},
	{"notion-token", "secret_", isAlnum, 43, 43},
	{"figma-token", "figd_", isURL, 38, 0},
	{"postman-key", "PMAK-", isURL, 50, 64},
	{"sentry-token", "sntrys_", isBase64, 60, 0},
	{"sentry-token", "sntryu_", isHex, 64, 64},
	{"doppler-token", "dp.pt.", isAlnum, 40, 44},
	{"doppler-token", "dp.st.", isDotted, 40, 0},
	{"netlify-token", "nfp_", isAlnum, 36, 40},
	{"vercel-token", "vcp_", isAlnum, 40, 0},
	{"supabase-token", "sbp_", isHex, 40, 40},
	{"supabase-key", "sb_secret_", isURL, 30, 0},
	{"planetscale-token", "pscale_tkn_", isDotted, 30, 0},
	{"planetscale-token", "pscale_oauth_", isDotted, 30, 0},
	{"planetscale-password", "pscale_pw_", isDotted, 30, 0},
	{"grafana-token", "glsa_", isURL, 40, 42},
	{"grafana-token", "glc_", isBase64, 32, 0},
	{"newrelic-key", "NRAK-", isAlnum, 27, 27},
	{"newrelic-key", "NRII-", isURL, 32, 32},
	{"databricks-token", "dapi", isHex, 32, 32},
	{"heroku-key", "HRKU-", isURL, 36, 0},
	{"tailscale-key", "tskey-", isURL, 24, 0},
	{"flyio-token", "fo1_", isURL, 40, 0},
	{"flyio-token", "fm2_", isBase64, 60, 0},
	{"onepassword-token", "ops_eyJ", isBase64, 100, 0},
	{"age-key", "AGE-SECRET-KEY-1", isCaps, 58, 58},
	{"square-token", "sq0csp-", isURL, 43, 43},
	{"square-token", "sq0atp-", isURL, 22, 22},
	{"square-token", "EAAA", isURL, 60, 60},
	{"facebook-token", "EAA", isAlnum, 100, 0},
	{"twilio-key", "SK", isHex, 32, 32},
	{"easypost-key", "EZAK", isAlnum, 54, 54},
	{"easypost-key", "EZTK", isAlnum, 54, 54},
	{"flutterwave-key", "FLWSECK", isURL, 12, 0},
	{"clojars-token", "CLOJARS_", isAlnum, 60, 60},
	{"dynatrace-token", "dt0c01.", isDotted, 80, 0},
	{"frameio-token", "fio-u-", isURL, 64, 64},
	{"sourcegraph-token", "sgp_", isURL, 40, 60},
	{"openshift-token", "sha256~", isURL, 43, 43},
	{"brevo-key", "xkeysib-", isURL, 70, 90},
	{"shippo-token", "shippo_live_", isHex, 40, 40},
	{"shippo-token", "shippo_test_", isHex, 40, 40},
	{"pulumi-token", "pul-", isHex, 40, 40},
	{"prefect-token", "pnu_", isAlnum, 36, 36},
	{"readme-token", "rdme_", isAlnum, 70, 70},
	{"typeform-token", "tfp_", isBase64, 59, 59},
	{"infracost-token", "ico-", isAlnum, 32, 32},
	{"scalingo-token", "tk-us-", isURL, 48, 48},
	{"duffel-token", "duffel_test_", isBase64, 40, 50},
	{"duffel-token", "duffel_live_", isBase64, 40, 50},
	{"yandex-key", "AQVN", isURL, 35, 38},
}

// tokensByFirst has the known tokens by the first character of their prefix.
var tokensByFirst = sync.OnceValue(func() *[256][]*token {
	var out [256][]*token
	for i := range knownTokens {
		first := knownTokens[i].prefix[0]
		out[first] = append(out[first], &knownTokens[i])
	}
	return &out
})

// tokens finds what begins as a known credential does.
func (t text) tokens() []span {
	var out []span
	known := tokensByFirst()
	for i := 0; i < len(t.s); i++ {
		if len(known[t.s[i]]) == 0 || !t.wordBegins(i) {
			continue
		}
		for _, k := range known[t.s[i]] {
			if !strings.HasPrefix(t.s[i:], k.prefix) {
				continue
			}
			body := i + len(k.prefix)
			end := t.run(body, k.in)
			if n := end - body; n >= k.min && (k.max == 0 || n <= k.max && !t.goesOn(end)) && k.plausible(t.s[body:end]) {
				out = append(out, span{i, end, k.mark})
				i = end - 1
				break
			}
		}
	}
	return out
}

// plausible tells a credential from an example or from names with the same
// beginning.
func (k *token) plausible(body string) bool {
	if isPlaceholder(body) || distinct(body) < 8 {
		return false
	}
	if k.prefix != "sk-" {
		return true
	}
	for _, known := range []string{"ant-", "proj-", "or-", "svcacct-", "admin-", "lf-", "kimi-"} {
		if rest, ok := strings.CutPrefix(body, known); ok {
			return !isWordy(rest)
		}
	}
	return !isWordy(body) && longestRun(body, isAlnum) >= 16
}

// run returns where the characters of a kind that begin at i end. A dot at the
// end of a sentence is not one of them.
func (t text) run(i int, in func(byte) bool) int {
	begin := i
	for i < len(t.s) && in(t.s[i]) {
		i++
	}
	for i > begin && t.s[i-1] == '.' {
		i--
	}
	return i
}

// goesOn tells whether a word that should have ended at i does not.
func (t text) goesOn(i int) bool { return i < len(t.s) && (isAlnum(t.s[i]) || t.s[i] == '_') }

// wordBegins tells whether a credential may begin at i: behind anything but a
// letter or a digit, or behind an escape (\n, %3D) that ends in one.
func (t text) wordBegins(i int) bool {
	if i == 0 || !isAlnum(t.s[i-1]) {
		return true
	}
	return i > 1 && t.s[i-2] == '\\' && strings.IndexByte("nrt", t.s[i-1]) >= 0 || i > 2 && t.s[i-3] == '%' && isHex(t.lower[i-2]) && isHex(t.lower[i-1])
}

// examples are in keys that documentation shows, in lower case.
var examples = []string{
	"example", "xxxx", "your", "placeholder", "changeme", "change-me", "change_me", "dummy", "redacted", "replace", "insert", "...", "…", "****", "sample", "notreal",
}

// isPlaceholder tells what stands for a secret in documentation: a word that says
// so, or characters in a row.
func isPlaceholder(v string) bool {
	low := lower(v)
	for _, e := range examples {
		if strings.Contains(low, e) {
			return true
		}
	}
	rows := 0
	for i := 1; i < len(low); i++ {
		if step := int(low[i]) - int(low[i-1]); -1 <= step && step <= 1 {
			rows++
		}
	}
	return 2*rows > len(low)
}

func distinct(s string) int {
	var seen [256]bool
	n := 0
	for i := range len(s) {
		if !seen[s[i]] {
			seen[s[i]] = true
			n++
		}
	}
	return n
}

func longestRun(s string, in func(byte) bool) int {
	longest, n := 0, 0
	for i := range len(s) {
		if n++; !in(s[i]) {
			n = 0
		}
		longest = max(longest, n)
	}
	return longest
}

// isWordy tells what is made of words, as names are: of letters, with a few
// digits behind them. Letters and digits that alternate are no words.
func isWordy(v string) bool {
	for i := 0; i < len(v); {
		if !isAlnum(v[i]) {
			i++
			continue
		}
		letters, digits := 0, 0
		for ; i < len(v) && isLetter(v[i]); i++ {
			letters++
		}
		for ; i < len(v) && isDigit(v[i]); i++ {
			digits++
		}
		if digits > 4 || i < len(v) && isLetter(v[i]) || letters > 24 {
			return false
		}
	}
	return true
}
