package workspace

import (
	"slices"
	"strings"
)

// isTask tells prompts that want something done from those that want to know
// something. A memory can bear on work, but shares words with much other work too.
func isTask(prompt string) bool {
	clauses := strings.FieldsFunc(strings.ToLower(prompt), func(r rune) bool { return strings.ContainsRune("\n，。；：！？、", r) })
	return slices.ContainsFunc(clauses, func(c string) bool {
		plain := strings.Trim(c, " ,.;:!?")
		return isOrder(strings.Fields(c)) || isOrderHan(plain) || isOrderKana(plain) || isOrderHangul(plain)
	})
}

// isOrder tells whether a clause of English begins with what is to be done.
func isOrder(words []string) bool {
	begins := true
	for len(words) > 0 {
		w, next := strings.TrimRight(words[0], ",.;:!?"), ""
		ends := len(w) < len(words[0])
		if words = words[1:]; len(words) > 0 {
			next = words[0]
		}
		switch {
		case begins && (isVerb(w) || isVerbOrNoun(w) && isDeterminer(next)):
			return true
		case begins && asksFor(w, next):
			words = words[1:]
		default:
			begins = ends || begins && isBeforeOrder(w)
		}
	}
	return false
}

// isBeforeOrder names what may stand before a verb that orders.
func isBeforeOrder(w string) bool {
	switch w {
	case "please", "now", "then", "and", "but", "ok", "okay", "also", "first", "next", "finally", "just", "so", "to", "let's", "lets", "again", "hey", "hi":
		return true
	}
	return false
}

func asksFor(subject, verb string) bool {
	switch subject {
	case "can", "could", "would", "will":
		return verb == "you"
	case "i", "we", "you":
		switch verb {
		case "want", "need", "should", "must":
			return true
		}
	case "i'd", "we'd":
		return verb == "like"
	}
	return false
}

func isDeterminer(w string) bool {
	switch w {
	case "the", "a", "an", "this", "that", "these", "those", "my", "our", "your", "its", "their", "it", "them", "me", "us", "all", "any", "each", "every", "some", "both", "another", "one", "two", "three", "only":
		return true
	}
	return false
}

// isVerb names what an agent is told to do. Words that mostly name something are in
// isVerbOrNoun; those that ask to be told something are in neither.
func isVerb(w string) bool {
	switch w {
	case "abort", "accept", "activate", "adapt", "add", "adjust", "align", "allow", "analyse", "analyze", "annotate", "append", "apply", "archive", "arrange", "assign", "attach", "automate", "avoid",
		"backport", "bring", "bump", "calculate", "cancel", "centre", "center", "change", "clean", "clear", "clone", "close", "collapse", "collect", "combine", "compare", "compile", "compose", "compress",
		"compute", "configure", "connect", "consolidate", "continue", "convert", "copy", "create", "cut", "debug", "declare", "decode", "decouple", "define", "delete", "deploy", "deprecate", "detect", "disable",
		"download", "draw", "drop", "edit", "embed", "enable", "encode", "encrypt", "enforce", "ensure", "evaluate", "exclude", "execute", "expand", "expose", "extend", "extract",
		"fetch", "fill", "finish", "fix", "generate", "give", "handle", "hide", "implement", "improve", "include", "increase", "indent", "initialise", "initialize", "inline", "insert", "inspect", "install", "integrate", "introduce",
		"investigate", "invert", "join", "keep", "kill", "launch", "let", "localise", "localize", "make", "merge", "migrate", "minify", "modify", "move", "mute", "normalise", "normalize",
		"optimise", "optimize", "organise", "organize", "parse", "paste", "persist", "polish", "prepare", "prevent", "print", "produce", "propose", "protect", "prove", "provide", "prune", "publish", "purge", "push", "put",
		"raise", "rebase", "rebuild", "recreate", "redesign", "redo", "reduce", "refactor", "reformat", "refresh", "regenerate", "reject", "reload", "remove", "rename", "render", "renew", "reorder", "repair", "repeat", "replace",
		"reproduce", "reset", "resize", "resolve", "restart", "restructure", "reuse", "revert", "revise", "rewrite", "rotate", "run", "sanitise", "sanitize", "save", "scrape", "secure", "select", "send", "separate",
		"serialise", "serialize", "serve", "set", "setup", "shorten", "show", "shrink", "simplify", "simulate", "sketch", "skip", "solve", "sort", "speed", "squash", "stabilise", "stabilize", "strip", "submit",
		"suggest", "summarise", "summarize", "suppress", "swap", "switch", "take", "throttle", "tidy", "toggle", "transform", "translate", "trim", "truncate", "try", "tune", "turn", "undo", "unify", "uninstall", "unpack",
		"update", "upgrade", "use", "validate", "verify", "wire", "wrap", "write":
		return true
	}
	return false
}

func isVerbOrNoun(w string) bool {
	switch w {
	case "audit", "benchmark", "build", "open", "split", "lower", "complete", "correct", "free", "round", "start", "stop", "store", "upload", "sign", "retry", "read", "bundle", "cache", "capture", "check", "comment", "commit", "count", "design", "display", "document", "draft", "dump", "export", "filter", "format", "group", "guard", "highlight", "hook", "import",
		"index", "iterate", "label", "link", "lint", "list", "load", "lock", "log", "map", "mark", "mask", "measure", "mock", "model", "monitor", "name", "order", "output", "package", "patch", "pin", "plan", "plot", "port", "profile", "pull",
		"record", "register", "release", "report", "request", "restore", "return", "review", "roll", "sample", "scale", "scan", "schedule", "stage", "stream", "structure", "style", "support", "sync", "tag", "test", "trace", "track", "train", "type", "view", "work":
		return true
	}
	return false
}

func isOrderHan(clause string) bool {
	if containsAny(clause, "吗", "呢", "谁", "哪", "几", "什么", "怎么", "怎样", "如何", "多少", "多久", "是不是", "有没有", "告诉", "说说", "介绍") {
		return false
	}
	return containsAny(clause, "一下", "帮我", "写一", "写个") || hasAnyPrefix(clause, "请", "帮", "把", "将", "让", "写", "改", "修", "删", "再", "加个", "加一", "加上", "做个", "做一", "画", "翻译", "生成", "实现", "重构",
		"优化", "检查", "运行", "创建", "新建", "更新", "升级", "合并", "拆", "整理", "添加", "增加", "替换", "转换", "安装", "给")
}

func isOrderKana(clause string) bool {
	return hasAnySuffix(clause, "て", "ください", "下さい", "くれ", "しろ", "せよ", "ましょう", "お願い", "お願いします", "ほしい", "欲しい") &&
		!containsAny(clause, "教えて", "聞かせて", "見せて") && !hasAnySuffix(clause, "ついて", "として", "とって", "よって", "関して")
}

func isOrderHangul(clause string) bool {
	return hasAnySuffix(clause, "줘", "줘요", "주세요", "주십시오", "주시겠어요", "줄래", "줄래요", "하자", "해라") && !containsAny(clause, "알려", "말해", "가르쳐")
}

func containsAny(s string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(s, part) })
}

func hasAnyPrefix(s string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(s, prefix) })
}
