package workspace

import (
	"strings"
	"testing"
)

func TestIsTask(t *testing.T) {
	for _, prompt := range []string{
		"rename the helper", "Please, now fix lint errors", "could you add a flag?", "I'd like to replace moment by date-fns", "it hangs again. restart the worker",
		"the build is red, test the parser alone", "log the request id",
		"帮我重命名这个函数", "太慢了，优化一下", "把图片放到 CDN", "この関数を直してください", "ブランチを切って", "이 함수를 고쳐 줘", "배포해 주세요",
	} {
		if !isTask(prompt) {
			t.Errorf("%q wants something done", prompt)
		}
	}
	for _, prompt := range []string{
		"", "which port does the gateway use?", "can we delete the old table", "log level of the inventory client", "test data", "optimizeDeps.include", "tell me which label lets a fix in", "I run out of memory",
		"怎么优化这个查询", "请告诉我端口", "デプロイの手順を教えてください", "祝日について", "배포 시간 알려 주세요", "왜 느려요",
	} {
		if isTask(prompt) {
			t.Errorf("%q wants to know something", prompt)
		}
	}
}

// What wants to know something needs less evidence than what wants something done.
func TestChance(t *testing.T) {
	chanceOf := func(prompt string) float64 {
		q := newQuery(prompt)
		q.docs, q.terms = corpus, q.asked
		for i := range q.terms {
			q.terms[i].weight = 3
			q.total += 3
		}
		return q.chance(func(t queryTerm) bool { return !strings.HasPrefix(t.text, "unsaid") })
	}
	asked, told := chanceOf("which gateway listens, unsaid?"), chanceOf("move gateway listens, unsaid")
	if asked <= told {
		t.Errorf("%.2f for a question, %.2f for a task", asked, told)
	}
}
