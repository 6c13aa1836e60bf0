// Stands for DSH: gives the plugin events as DSH does and prints, as a line of JSON each, what came of them. Arguments:
// the plugin, the program it is to call, how much faster time goes, and the steps.
import { pathToFileURL } from 'node:url'

const [plugin, command, speed, steps] = process.argv.slice(2)
const real = setTimeout
let fired // whether a limit was reached
globalThis.setTimeout = (f, ms) => real(() => { fired = true; f() }, ms / speed)

const handlers = {}
const disposers = []
const tools = {}
const ctx = {
  on: (name, f) => { handlers[name] = f },
  effect: f => { disposers.push(f()) },
  inject: (services, f) => f({ tools: { register: tool => { tools[tool.name] = tool } } }),
}
const { apply } = await import(pathToFileURL(plugin))
apply(ctx, command ? { command } : undefined)

const session = { id: 's', header: { cwd: '/p' }, events: [], surface: { nodes: [] } }
const child = { id: 'c', header: { cwd: '/p', origin: 'subagent', parentSession: 's' }, events: [], surface: { nodes: [] } }
const of = step => step.child ? child : session

const emit = (to, type, data) => {
  const event = { type, data, seq: to.events.length }
  to.events.push(event)
  handlers['session/event'](to, event)
}

const run = {
  start: step => handlers['agent/session-start']({ agent: { session: of(step) }, source: step.start }),
  event: step => emit(of(step), step.event, step.data ?? {}),
  keep: step => { session.surface.nodes = step.keep },
  step: async step => {
    const abort = new AbortController()
    const messages = step.step.map(([kind, text], i) => ({ role: 'user', id: `m${i}`, content: [{ type: 'text', text }], source: { kind } }))
    const decision = step.reject ? { kind: 'reject' } : { kind: 'enter', messages, extra: 1 }
    const asked = handlers['agent/pre-step']({ agent: { session: of(step) }, messages, turn: step.turn ?? 1, step: 1, signal: abort.signal }, async () => decision)
    if (step.abort) real(() => abort.abort(), step.abort)
    const got = await asked
    for (const m of got.messages ?? []) emit(of(step), 'user/message', m)
    if (got.messages) got.messages = got.messages.map(m => `${m.source.kind}: ${m.content[0].text}${m.role === 'user' && m.id ? '' : ' ?'}`)
    return got
  },
  tool: step => handlers['tools/pre-execute']({ name: 'read', arguments: step.tool, agent: step.nobody ? undefined : { session: of(step) }, signal: new AbortController().signal }, async () => ({ kind: 'allow' })),
  call: async step => {
    const tool = tools[step.call]
    try {
      const value = await tool.execute(step.args, { signal: new AbortController().signal })
      return tool.output.render(step.args, value)
    } catch (e) { return { error: e.message } }
  },
  odd: step => handlers[step.odd](...step.args, async () => 'next'),
  disposed: step => handlers['session/disposed'](of(step)),
  dispose: async () => { for (const f of disposers) await f() },
  exit: () => process.exit(),
}

for (const step of JSON.parse(steps)) {
  const [kind] = Object.keys(step)
  fired = false
  const got = await run[kind](step)
  if (['step', 'tool', 'call', 'dispose'].includes(kind) || got === 'next') console.log(JSON.stringify({ [kind]: got ?? null, slow: fired }))
}
