package remote

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
)

// Tool asks for what a tool of a model does. No secret in its arguments leaves the
// machine.
func (m *Memory) Tool(ctx context.Context, name string, arguments json.RawMessage) (client.Answer, error) {
	return m.Job(ctx, name, cleaned(arguments))
}

// cleanCall takes the secrets out of what a model asks for.
func cleanCall(req *jsonrpc.Request) {
	const key = "arguments"
	var params map[string]json.RawMessage
	if json.Unmarshal(req.Params, &params) != nil || params[key] == nil {
		return
	}
	params[key] = cleaned(params[key])
	if raw, err := json.Marshal(params); err == nil {
		req.Params = raw
	}
}

// cleaned is a JSON value with [hooks.Clean] done to each text in it.
func cleaned(value json.RawMessage) json.RawMessage {
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return json.RawMessage("null") // nobody can tell what is in it
	}
	raw, err := json.Marshal(hooks.MapTexts(v, hooks.Clean))
	if err != nil {
		return json.RawMessage("null")
	}
	return raw
}
