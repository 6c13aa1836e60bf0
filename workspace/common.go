package workspace

import "strings"

// isEverydayWord names the stems of words that are common in any talk. In a small
// workspace they can be as rare as a name, and yet a memory that has one is not
// what was asked for. The list is of the commonest English words, without those that name
// things of our trade but with those that are said to any agent about any code.
func isEverydayWord(w string) bool {
	switch w {
	case "abl", "accord", "across", "actual", "actually", "afternoon", "age", "ago", "agre", "ahead", "air", "allow", "almost", "alon", "along",
		"alright", "although", "alway", "amaz", "among", "amount", "another", "anybody", "anyon", "anyth", "anyway", "anywher", "apart", "appear",
		"around", "array", "arriv", "ask", "asleep", "attent", "automatic", "autumn", "availabl", "avoid", "away", "awesom", "back", "bad", "basic",
		"basically", "beautiful", "becaus", "becom", "bed", "begin", "behind", "believ", "belong", "beneath", "besid", "best", "better", "beyond", "big",
		"bird", "bit", "body", "bother", "bottom", "boy", "break", "breath", "bring", "broad", "bug", "busy", "buy", "car", "careful",
		"carefully", "carry", "catch", "caus", "certain", "certainly", "chanc", "character", "cheap", "choic", "choos", "city", "clean",
		"cleaner", "clear", "clearer", "clearly", "cold", "com", "comfortabl", "comment", "common", "complet", "completely", "comput", "concern",
		"consider", "continu", "cook", "cool", "copy", "corner", "correct", "coupl", "cours", "crazy", "cry", "curious", "cut", "danger",
		"dead", "deal", "dear", "debug", "decid", "deep", "definitely", "describ", "despit", "detail", "die", "differenc", "different", "difficult",
		"discuss", "docstr", "document", "door", "doubl", "doubt", "dozen", "dream", "drink", "dry", "due", "dur", "ear",
		"early", "earth", "easily", "east", "easy", "eat", "edit", "effort", "eight", "either", "enjoy", "enough", "enter", "entir", "entirely",
		"especially", "even", "every", "everybody", "everyon", "everyth", "everywher", "exact", "exactly", "exampl", "excellent", "except", "excit",
		"excus", "execut", "expect", "expensiv", "experienc", "explain", "extra", "extremely", "eye", "fact", "fail", "fair", "fairly", "fall", "familiar",
		"family", "famous", "fantastic", "far", "fast", "favorit", "feel", "feet", "fight", "figur", "fin", "finally", "find", "finger",
		"finish", "fiv", "floor", "fly", "food", "foot", "forget", "format", "forward", "four", "fresh", "friend", "fun", "funct",
		"funny", "further", "futur", "gentl", "girl", "glad", "go", "great", "ground", "grow", "guess", "guy", "habit", "hair", "half", "hand",
		"happen", "happy", "hard", "hardly", "head", "hear", "heart", "heavy", "high", "hill", "hit", "hold", "holiday", "hop", "hour",
		"hous", "however", "hug", "human", "hundr", "hungry", "hurry", "hurt", "idea", "imagin", "immediately", "important", "impossibl", "indeed",
		"indent", "input", "instead", "interest", "item", "itself", "jok", "joy", "keep", "kind", "lady", "larg", "lat",
		"later", "laugh", "lay", "lazy", "lead", "learn", "least", "leav", "leg", "less", "letter", "lie", "lif", "likely", "lin", "lip", "list", "listen",
		"littl", "lonely", "long", "longer", "loop", "los", "lot", "loud", "lov", "low", "luck", "lunch", "mad", "mak", "man", "many", "marry", "matter",
		"mayb", "meal", "mean", "meet", "ment", "mer", "middl", "mil", "mind", "minor", "minut", "miss", "mistak", "modul", "moment", "money", "month",
		"mood", "moon", "morn", "mountain", "mouth", "mov", "much", "music", "myself", "nam", "natural", "near", "nearly", "necessary", "neck",
		"neighbour", "neither", "nervous", "never", "new", "nic", "nicer", "night", "nin", "nobody", "non", "north", "nos", "noth", "notic", "number",
		"object", "obvious", "obviously", "occur", "odd", "offer", "often", "oh", "old", "open", "opinion", "opposit", "ordinary", "otherwis", "ought",
		"output", "paragraph", "parameter", "parenthes", "part", "particular", "past", "peopl", "perfect", "perfectly", "perhap", "period", "person",
		"pick", "pictur", "piec", "plac", "plant", "play", "plenty", "plural", "pocket", "point", "poor", "popular", "possibl", "possibly", "practic",
		"prefer", "prepar", "pretty", "print", "probably", "promis", "proper", "properly", "proud", "purpos", "quick", "quickly", "quit", "rain", "rather",
		"reach", "ready", "real", "realis", "realiz", "really", "reason", "recent", "recently", "redo", "refactor", "reform", "remain", "remov", "renam",
		"result", "return", "rewrit", "rich", "rid", "ris", "road", "sad", "sav", "screenshot", "script", "sea", "second", "seem",
		"sell", "sens", "serious", "seriously", "seven", "several", "shak", "sharp", "short", "shorter", "shoulder", "shout", "shut", "sick", "sid",
		"similar", "simpl", "simpler", "simplify", "simply", "sinc", "sing", "sit", "situat", "six", "skin", "sky", "slowly", "small", "smart",
		"smell", "smil", "snippet", "soil", "solv", "somebody", "somehow", "someon", "someth", "sometim", "somewher", "soon", "sorry", "sort",
		"sound", "sourc", "south", "speak", "special", "specific", "spell", "spend", "split", "stand", "star", "stay", "steal", "step", "stick", "stomach",
		"ston", "storm", "story", "str", "straight", "strang", "string", "strong", "stuff", "stupid", "sudden", "suddenly", "suggest", "suit",
		"summaris", "summariz", "summary", "summer", "sun", "suppos", "sur", "surely", "surpris", "sweet", "swim", "syntax", "tabl", "tak", "talk", "tall",
		"tast", "teach", "ten", "terribl", "text", "themselv", "therefor", "thick", "thin", "third", "thirty", "though", "thought", "thousand",
		"thre", "through", "throw", "thus", "tie", "tiny", "tir", "together", "tonight", "totally", "toward", "town", "transl", "travel", "tre", "trip",
		"troubl", "tru", "truth", "turn", "twelv", "twenty", "twic", "typ", "typo", "understand", "undo", "unit", "until", "upon", "usual",
		"usually", "valu", "variabl", "various", "vers", "view", "villag", "visit", "voic", "wait", "wak", "walk", "wall", "war", "warm", "wash", "wast",
		"water", "weak", "wear", "weather", "week", "weekend", "west", "wet", "whatever", "whenever", "whether", "whil", "whisper", "whol", "wild",
		"winter", "wis", "wish", "within", "woman", "wonder", "wonderful", "wood", "world", "worry", "wors", "worst", "worth", "wow", "yard",
		"year", "yet", "young", "yourself", "zero":
		return true
	}
	return false
}

// everydayHan are two-character words of Chinese, and of Japanese in Han, that are
// common in any talk.
const everydayHan = " 今天 明天 昨天 现在 开始 结束 继续 可以 一步 下一 一下 一个 一些 一遍 一点 有没 没有 怎么 什么 为什 这个 那个 这样 那样 这些 那些 如何 帮我 帮忙 请问 请帮 " +
	"检查 看看 解释 说明 一首 一篇 这段 这里 哪里 时候 有时 几个 多少 需要 应该 问题 东西 事情 知道 觉得 认为 告诉 喜欢 推荐 实现 完成 处理 修改 更新 添加 增加 删除 运行 测试 代码 文件 函数 程序 " +
	"用户 使用 进行 还是 或者 但是 因为 所以 如果 然后 已经 非常 比较 更清 清楚 早上 晚上 周末 谢谢 好的 再次 重新 改成 变成 写一 用的 的时 候会 今日 明日 昨日 最近 以前 以后 全部 所有 " +
	"一度 一回 作成 追加 修正 変更 確認 説明 教え 実行 作業 関数 変数 場合 必要 方法 理由 使用 自分 文章 次の "

func isEverydayHan(term string) bool { return strings.Contains(everydayHan, " "+term+" ") }

// endingsHangul are pairs of syllables that end Korean verbs and phrases.
const endingsHangul = " 니다 습니 입니 합니 됩니 니까 습까 세요 주세 하세 해요 어요 아요 에요 예요 나요 까요 지요 네요 군요 해서 하고 하는 하면 했어 됐어 있어 없어 있습 없습 있는 없는 했습 됐습 겠습 해야 되나 하나 " +
	"인가 가요 건가 는데 은데 지만 라고 으로 에서 에게 부터 까지 때문 그렇 렇게 이렇 어떻 떻게 무엇 뭐예 언제 어디 누구 얼마 그리 리고 그런 런데 좋아 주시 시겠 바랍 부탁 해줘 해주 해 주 줘요 "

func isEndingHangul(term string) bool { return strings.Contains(endingsHangul, " "+term+" ") }
