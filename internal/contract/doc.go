// Package contract proves the product against the real agent hosts.
//
// It holds fake model servers on loopback (the Responses API for Codex, the Messages API for Claude Code, the Chat
// Completions API for the others), drivers that run the real host programs headless in a fake home, and the tests
// that use both. Nothing of the product links it.
//
// The hosts are found by environment variables, which .ci/run sets after installing the releases pinned in .ci/hosts.txt:
// REME_CONTRACT_CODEX, REME_CONTRACT_CLAUDE_CODE, REME_CONTRACT_KIMI,
// REME_CONTRACT_DSH, REME_CONTRACT_HERMES, REME_CONTRACT_OPENCLAW and REME_CONTRACT_NODE hold the paths of the programs,
// REME_CONTRACT_REME that of the real ReMe service,
// REME_CONTRACT_REQUIRED=1 turns the skip for a missing host into a failure, and REME_CONTRACT_KEEP=1 keeps the
// fake homes for a look.
package contract
