package hooks

import "testing"

func TestWorthRecalling(t *testing.T) {
	t.Parallel()
	for prompt, want := range map[string]bool{
		"":                             false,
		" \n\t":                        false,
		"?!":                           false,
		"ok":                           false,
		"OK.":                          false,
		"Yes, please!":                 false,
		"go on":                        false,
		"thanks :)":                    false,
		"继续":                           false,
		"好的。":                          false,
		"続けて":                          false,
		"네":                            false,
		"/clear":                       false,
		"/compact keep the plan":       false,
		"/plugin:command x":            false,
		"!ls -la":                      false,
		"# remember this":              false,
		"/etc/hosts is wrong":          true,
		"/home":                        false,
		"continue with the parser":     true,
		"why?":                         true,
		"What is my cat called?":       true,
		"no, use the staging database": true,
		"我的猫叫什么？":                      true,
	} {
		if got := WorthRecalling(prompt); got != want {
			t.Errorf("WorthRecalling(%q) = %v", prompt, got)
		}
	}
}

func TestMachineMade(t *testing.T) {
	t.Parallel()
	a := &Adapter{Machine: []string{"task-notification"}}
	for prompt, want := range map[string]bool{
		"<task-notification>\n<task-id>x</task-id>\n</task-notification>":                  true,
		" <task-notification>a</task-notification>\n":                                      true,
		"<task-notification>a</task-notification><task-notification>b</task-notification>": true,
		"<task-notification>a</task-notification> and what does it mean?":                  false,
		"what is <task-notification>a</task-notification>?":                                false,
		"<task-notification> without an end":                                               false,
		"":                                                                                 false,
		"hello":                                                                            false,
	} {
		if got := a.machineMade(prompt); got != want {
			t.Errorf("machineMade(%q) = %v", prompt, got)
		}
	}
}
