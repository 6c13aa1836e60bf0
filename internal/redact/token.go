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
func isHex(c byte) bool    { return isDigit(c) || 'a' <= c && c <= 'f' }

// charset is a kind of characters that credentials are made of.
type charset int

const (
	alnum charset = iota
	caps
	digits
	hex
	urlsafe
	dotted
	base64 // as values in headers and configuration have it
	charsets
)

func (s charset) has(c byte) bool {
	switch s {
	case alnum:
		return isAlnum(c)
	case caps:
		return isUpper(c) || isDigit(c)
	case digits:
		return isDigit(c)
	case hex:
		return isHex(c)
	case urlsafe:
		return isURL(c)
	case dotted:
		return isURL(c) || c == '.'
	}
	return isURL(c) || strings.IndexByte("./+=~", c) >= 0
}

// token is a form of credential that is told by how it begins.
type token struct {
	mark     string
	prefix   string
	in       charset // the characters after the prefix
	min, max int     // their number; max is 0 if there is no limit
}

var knownTokens = []token{
	{"api-key", "sk-", urlsafe, 20, 0},
	{"api-key", "xai-", alnum, 60, 100},
	{"api-key", "gsk_", alnum, 40, 64},
	{"api-key", "pplx-", alnum, 40, 64},
	{"api-key", "r8_", alnum, 36, 42},
	{"api-key", "nvapi-", urlsafe, 60, 80},
	{"api-key", "tvly-", urlsafe, 24, 80},
	{"api-key", "jina_", urlsafe, 50, 80},
	{"api-key", "fw_", alnum, 20, 40},
	{"api-key", "fc-", hex, 32, 32},
	{"api-key", "e2b_", hex, 40, 40},
	{"api-key", "csk-", alnum, 40, 60},
	{"api-key", "tgp_v1_", urlsafe, 40, 0},
	{"api-key", "pcsk_", urlsafe, 60, 0},
	{"api-key", "vck_", alnum, 40, 0},
	{"api-key", "sk_", hex, 48, 48},
	{"api-key", "re_", urlsafe, 33, 33},
	{"api-key", "phx_", alnum, 40, 50},
	{"api-key", "apify_api_", alnum, 30, 0},
	{"api-key", "wandb_v1_", urlsafe, 40, 0},
	{"api-key", "napi_", alnum, 60, 64},
	{"api-key", "rnd_", alnum, 28, 32},
	{"mapbox-token", "sk.eyJ", dotted, 60, 0},
	{"api-key", "lsv2_pt_", urlsafe, 32, 64},
	{"api-key", "lsv2_sk_", urlsafe, 32, 64},
	{"huggingface-token", "hf_", alnum, 30, 40},
	{"huggingface-token", "api_org_", alnum, 30, 40},
	{"stripe-key", "sk_live_", alnum, 16, 0},
	{"stripe-key", "sk_test_", alnum, 16, 0},
	{"stripe-key", "rk_live_", alnum, 16, 0},
	{"stripe-key", "rk_test_", alnum, 16, 0},
	{"stripe-key", "sk_prod_", alnum, 16, 0},
	{"stripe-key", "rk_prod_", alnum, 16, 0},
	{"stripe-key", "whsec_", base64, 24, 0},
	{"github-token", "ghp_", alnum, 30, 0},
	{"github-token", "gho_", alnum, 30, 0},
	{"github-token", "ghu_", alnum, 30, 0},
	{"github-token", "ghs_", alnum, 30, 0},
	{"github-token", "ghr_", alnum, 30, 0},
	{"github-token", "github_pat_", urlsafe, 30, 0},
	{"gitlab-token", "glpat-", dotted, 20, 0},
	{"gitlab-token", "gldt-", urlsafe, 20, 0},
	{"gitlab-token", "glrt-", dotted, 20, 0},
	{"gitlab-token", "glptt-", urlsafe, 20, 0},
	{"gitlab-token", "glcbt-", urlsafe, 20, 0},
	{"gitlab-token", "glft-", urlsafe, 20, 0},
	{"gitlab-token", "glsoat-", urlsafe, 20, 0},
	{"gitlab-token", "glimt-", urlsafe, 20, 0},
	{"gitlab-token", "glagent-", urlsafe, 20, 0},
	{"gitlab-token", "gloas-", urlsafe, 20, 0},
	{"gitlab-token", "glffct-", urlsafe, 20, 0},
	{"gitlab-token", "GR1348941", urlsafe, 20, 20},
	{"slack-token", "xoxb-", urlsafe, 20, 0},
	{"slack-token", "xoxp-", urlsafe, 20, 0},
	{"slack-token", "xoxa-", urlsafe, 20, 0},
	{"slack-token", "xoxr-", urlsafe, 20, 0},
	{"slack-token", "xoxs-", urlsafe, 20, 0},
	{"slack-token", "xoxc-", urlsafe, 20, 0},
	{"slack-token", "xoxd-", base64, 20, 0},
	{"slack-token", "xoxe-", urlsafe, 20, 0},
	{"slack-token", "xoxe.xox", urlsafe, 20, 0},
	{"slack-token", "xapp-", urlsafe, 20, 0},
	{"aws-key", "AKIA", caps, 16, 16},
	{"aws-key", "ASIA", caps, 16, 16},
	{"aws-key", "ABIA", caps, 16, 16},
	{"aws-key", "ACCA", caps, 16, 16},
	{"aws-key", "ABSK", base64, 100, 0},
	{"aws-key", "bedrock-api-key-", base64, 60, 0},
	{"alibaba-key", "LTAI", alnum, 16, 20},
	{"tencent-key", "AKID", alnum, 32, 32},
	{"google-key", "AIza", urlsafe, 35, 35},
	{"google-key", "AQ.Ab", urlsafe, 40, 0},
	{"google-token", "ya29.", urlsafe, 30, 0},
	{"google-token", "1//0", urlsafe, 40, 0},
	{"google-secret", "GOCSPX-", urlsafe, 28, 28},
	{"npm-token", "npm_", alnum, 36, 36},
	{"crates-token", "cio", alnum, 32, 32},
	{"nuget-key", "oy2", alnum, 43, 43},
	{"artifactory-token", "AKCp", alnum, 60, 80},
	{"artifactory-token", "cmVmdGtuOjAx", alnum, 50, 60},
	{"open-vsx-token", "ovsxat_", urlsafe, 30, 0},
	{"pypi-token", "pypi-", urlsafe, 50, 0},
	{"rubygems-token", "rubygems_", hex, 48, 48},
	{"docker-token", "dckr_pat_", urlsafe, 24, 40},
	{"docker-token", "dckr_oat_", urlsafe, 24, 40},
	{"digitalocean-token", "dop_v1_", hex, 64, 64},
	{"digitalocean-token", "doo_v1_", hex, 64, 64},
	{"digitalocean-token", "dor_v1_", hex, 64, 64},
	{"shopify-token", "shpat_", alnum, 32, 32},
	{"shopify-token", "shpss_", alnum, 32, 32},
	{"shopify-token", "shpca_", alnum, 32, 32},
	{"shopify-token", "shppa_", alnum, 32, 32},
	{"sendgrid-key", "SG.", dotted, 60, 70},
	{"mailgun-key", "key-", hex, 32, 32},
	{"vault-token", "hvs.", urlsafe, 24, 0},
	{"vault-token", "hvb.", urlsafe, 24, 0},
	{"vault-token", "hvr.", urlsafe, 24, 0},
	{"atlassian-token", "ATATT3x", base64, 60, 0},
	{"atlassian-token", "ATCTT3x", base64, 60, 0},
	{"atlassian-token", "ATBB", alnum, 32, 32},
	{"linear-key", "lin_api_", alnum, 40, 40},
	{"linear-key", "lin_oauth_", alnum, 40, 64},
	{"airtable-token", "pat", dotted, 79, 79},
	{"contentful-token", "CFPAT-", urlsafe, 43, 43},
	{"sonar-token", "squ_", hex, 40, 40},
	{"sonar-token", "sqp_", hex, 40, 40},
	{"sonar-token", "sqa_", hex, 40, 40},
	{"buildkite-token", "bkua_", hex, 40, 40},
	{"circleci-token", "CCIPAT_", urlsafe, 50, 0},
	{"facebook-token", "EAA", alnum, 100, 0},
	{"razorpay-key", "rzp_live_", alnum, 14, 14},
	{"paddle-key", "pdl_live_apikey_", urlsafe, 50, 0},
	{"notion-token", "ntn_", alnum, 40, 50},
	{"notion-token", "secret_", alnum, 43, 43},
	{"figma-token", "figd_", urlsafe, 38, 0},
	{"postman-key", "PMAK-", urlsafe, 50, 64},
	{"sentry-token", "sntrys_", base64, 60, 0},
	{"sentry-token", "sntryu_", hex, 64, 64},
	{"doppler-token", "dp.pt.", alnum, 40, 44},
	{"doppler-token", "dp.st.", dotted, 40, 0},
	{"netlify-token", "nfp_", alnum, 36, 40},
	{"vercel-token", "vcp_", alnum, 40, 0},
	{"vercel-token", "vercel_blob_rw_", urlsafe, 40, 0},
	{"cloudflare-token", "cfut_", alnum, 40, 0},
	{"cloudflare-token", "cfat_", alnum, 40, 0},
	{"cloudflare-token", "cfk_", alnum, 40, 0},
	{"cloudflare-token", "v1.0-", urlsafe, 170, 0},
	{"supabase-token", "sbp_", hex, 40, 40},
	{"supabase-key", "sb_secret_", urlsafe, 30, 0},
	{"planetscale-token", "pscale_tkn_", dotted, 30, 0},
	{"planetscale-token", "pscale_oauth_", dotted, 30, 0},
	{"planetscale-password", "pscale_pw_", dotted, 30, 0},
	{"grafana-token", "glsa_", urlsafe, 40, 42},
	{"grafana-token", "glc_", base64, 32, 0},
	{"newrelic-key", "NRAK-", alnum, 27, 27},
	{"newrelic-key", "NRII-", urlsafe, 32, 32},
	{"databricks-token", "dapi", hex, 32, 32},
	{"heroku-key", "HRKU-", urlsafe, 36, 0},
	{"tailscale-key", "tskey-", urlsafe, 24, 0},
	{"flyio-token", "fo1_", urlsafe, 40, 0},
	{"flyio-token", "fm2_", base64, 60, 0},
	{"onepassword-token", "ops_eyJ", base64, 100, 0},
	{"age-key", "AGE-SECRET-KEY-1", caps, 58, 58},
	{"square-token", "sq0csp-", urlsafe, 43, 43},
	{"square-token", "sq0atp-", urlsafe, 22, 22},
	{"twilio-key", "SK", hex, 32, 32},
	{"easypost-key", "EZAK", alnum, 54, 54},
	{"easypost-key", "EZTK", alnum, 54, 54},
	{"flutterwave-key", "FLWSECK", urlsafe, 12, 0},
	{"clojars-token", "CLOJARS_", alnum, 60, 60},
	{"dynatrace-token", "dt0c01.", dotted, 80, 0},
	{"frameio-token", "fio-u-", urlsafe, 64, 64},
	{"sourcegraph-token", "sgp_", urlsafe, 40, 60},
	{"openshift-token", "sha256~", urlsafe, 43, 43},
	{"brevo-key", "xkeysib-", urlsafe, 70, 90},
	{"shippo-token", "shippo_live_", hex, 40, 40},
	{"shippo-token", "shippo_test_", hex, 40, 40},
	{"pulumi-token", "pul-", hex, 40, 40},
	{"prefect-token", "pnu_", alnum, 36, 36},
	{"readme-token", "rdme_", alnum, 70, 70},
	{"typeform-token", "tfp_", base64, 59, 59},
	{"infracost-token", "ico-", alnum, 32, 32},
	{"scalingo-token", "tk-us-", urlsafe, 48, 48},
	{"duffel-token", "duffel_test_", base64, 40, 50},
	{"duffel-token", "duffel_live_", base64, 40, 50},
	{"yandex-key", "AQVN", urlsafe, 35, 38},
}

// maxJudged is how much of a value is looked at to tell whether it is a secret,
// in bytes.
const maxJudged = 512

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
func (t *text) tokens() []span {
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
			n := end - body
			if n < k.min || k.max > 0 && (n > k.max || t.goesOn(end)) {
				continue
			}
			is := k.plausible(t.s[body:min(end, body+maxJudged)])
			if is {
				out = append(out, span{i, end, k.mark})
			}
			if is || n > maxJudged {
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
		const shortest = 3 // of the beginnings that names do not have as well
		return len(k.prefix) > shortest || !isWordy(body)
	}
	for _, known := range []string{"ant-", "proj-", "or-", "svcacct-", "admin-", "lf-", "kimi-"} {
		if rest, ok := strings.CutPrefix(body, known); ok {
			return !isWordy(rest)
		}
	}
	return !isWordy(body) && longestRun(body, isAlnum) >= 16
}

// run returns where the characters of a kind that begin at i end. A dot at the
// end of a sentence is not one of them. The last answer is remembered, so that
// no text takes more than one pass.
func (t *text) run(i int, in charset) int {
	last := &t.runs[in]
	if i < last.start || i >= last.end {
		*last = span{start: i, end: i}
		for last.end < len(t.s) && in.has(t.s[last.end]) {
			last.end++
		}
	}
	end := last.end
	for end > i && t.s[end-1] == '.' {
		end--
	}
	return end
}

// goesOn tells whether a word that should have ended at i does not.
func (t *text) goesOn(i int) bool { return i < len(t.s) && (isAlnum(t.s[i]) || t.s[i] == '_') }

// wordBegins tells whether a credential may begin at i: behind anything but a
// letter or a digit, or behind an escape (\n, %3D) that ends in one.
func (t *text) wordBegins(i int) bool {
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
// digits behind them. Letters and digits that alternate are no words, nor are
// letters whose case changes as in none.
func isWordy(v string) bool {
	for i := 0; i < len(v); {
		if !isAlnum(v[i]) {
			i++
			continue
		}
		letters, digits, begin := 0, 0, i
		for ; i < len(v) && isLetter(v[i]); i++ {
			letters++
		}
		if isScrambled(v[begin:i]) {
			return false
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

// isScrambled tells letters that a machine drew: their case changes often, and
// not where words begin.
func isScrambled(v string) bool {
	const shortest, fewest = 10, 4
	changes := 0
	for i := range len(v) {
		if !isLetter(v[i]) {
			return false
		}
		if i > 0 && isUpper(v[i]) != isUpper(v[i-1]) {
			changes++
		}
	}
	return len(v) >= shortest && changes >= fewest && 2*inWords(v, 2) <= len(v)
}
