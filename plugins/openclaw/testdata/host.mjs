// Stands for OpenClaw: gives the plugin events as OpenClaw does and prints, as a line of JSON each, what came of them.
// Arguments: the plugin, its configuration, how much faster time goes, and the steps.
import { pathToFileURL } from 'node:url'

const [file, config, speed, steps] = process.argv.slice(2)
const real = setTimeout
let fired // whether a limit was reached
globalThis.setTimeout = (f, ms) => real(() => { fired = true; f() }, ms / speed)

const { default: plugin } = await import(pathToFileURL(file))
let handlers, tools
for (const registrationMode of ['full', 'discovery', 'discovery']) {
  handlers = {}
  tools = {}
  plugin.register({
    registrationMode,
    pluginConfig: JSON.parse(config),
    on: (hook, handle) => { handlers[hook] = handle },
    registerTool: tool => { tools[tool.name] = tool },
    registerCli: () => {},
  })
}

const about = {
  runId: 'r', agentId: 'main', sessionKey: 'agent:main:main', sessionId: 's', workspaceDir: '/p', trigger: 'user',
  modelId: 'm', abortSignal: new AbortController().signal, hookInvocation: { assertActive() {} }, big: 1n,
}

const run = async ({ on, event = {}, ctx, tool, args, together }) => {
  if (together) return Promise.all(together.map(run))
  if (tool) return tools[tool].execute('call_1', args).catch(e => ({ error: e.message }))
  return handlers[on](event, ctx === null ? ctx : { ...about, ...ctx })
}

for (const step of JSON.parse(steps)) {
  fired = false
  const got = await run(step)
  console.log(JSON.stringify({ got: got ?? null, slow: fired }))
}

// Who is waited for still, keeps OpenClaw from ending.
process.on('exit', () => { if (fired) console.log('late') })
fired = false
