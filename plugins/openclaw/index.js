// The shared memory of coding agents in OpenClaw. Made by reme-hook 0.0.0-source, which replaces this file: do not edit it.
//
// Each event is a child, `reme-hook openclaw <event>`, with JSON on its stdin; what is to be done is decided there. A child
// that is missing, fails, hangs or answers with anything but JSON is as good as none.
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'

const command = 'reme-hook'
const limit = 3000 // ms for a hook; reme-hook itself ends after 2900
const toolLimit = 10000 // ms for a tool; reme-hook itself ends after 8000
const patience = 1000 // ms that OpenClaw waits for a child whose answer it does not need
const group = process.platform !== 'win32'

// Runs a child; how it ends and what it prints.
const run = (args, input, { env, limit, patience }) => new Promise(resolve => {
  const child = spawn(command, args, {
    stdio: ['pipe', patience ? 'ignore' : 'pipe', 'ignore'], detached: group, windowsHide: true, env: { ...process.env, ...env },
  })
  let out = ''
  const stop = () => {
    // Whoever holds the pipe would keep OpenClaw from exiting: the whole group goes.
    try { group ? process.kill(-child.pid, 'SIGKILL') : child.kill() } catch {}
    child.stdout?.destroy()
    end()
  }
  const killer = setTimeout(stop, limit)
  const waiter = patience && setTimeout(resolve, patience)
  const end = code => {
    clearTimeout(killer)
    clearTimeout(waiter)
    resolve({ code, out })
  }
  child.on('error', stop)
  child.on('close', end)
  child.stdout?.setEncoding('utf8').on('data', text => {
    out += text
    if (out.length > 1e6) stop()
  })
  child.stdin.on('error', () => {}).end(input)
  if (patience) {
    // It goes on without OpenClaw, which may be about to exit.
    child.unref()
    killer.unref()
  }
}).catch(() => {})

const text = content => typeof content === 'string' ? content : content?.filter?.(part => part?.type === 'text')

// What was said in the turn: from where the conversation ended when it began, or, if that has been shortened, from the last
// message of the user on.
const turn = (messages, begin) => messages.slice(messages[begin]?.role === 'user' ? begin : messages.findLastIndex(m => m.role === 'user'))
  .filter(m => m.role === 'user' || m.role === 'assistant')
  .map(({ role, content, stopReason, provenance }) => ({ role, content: text(content), stopReason, provenance }))

const prefix = 'reme_' // of the tools' names

export default {
  id: 'reme',
  name: 'ReMe',
  description: 'The shared memory of the coding agents on this machine',
  register(api) {
    const { endpoint, autoRecall, autoCapture, recallLimit, recallMaxChars, scope } = api.pluginConfig ?? {}
    const env = Object.fromEntries(Object.entries({
      REME_SERVICE: endpoint, REME_RECALL: autoRecall, REME_CAPTURE: autoCapture, REME_RECALL_LIMIT: recallLimit, REME_RECALL_MAX_CHARS: recallMaxChars,
    }).filter(([, value]) => value !== undefined))
    const profile = process.env.OPENCLAW_PROFILE || process.env.OPENCLAW_STATE_DIR
    const tails = new Map() // of each session the last child: they run one after the other
    const runs = new Map() // of each run what its end does not tell: who wrote its prompt, and how long the conversation was

    const call = (hook, event, ctx, how) => {
      const { runId, agentId, sessionKey, sessionId, workspaceDir, trigger, inputProvenance } = ctx
      const about = { runId, agentId, sessionKey, sessionId, workspaceDir, trigger, inputProvenance, profile, scope }
      const input = JSON.stringify({ hook, event, ctx: about })
      const begun = () => run(['openclaw', hook], input, { env, limit, ...how })
      const answer = tails.has(sessionKey) ? tails.get(sessionKey).then(begun) : begun()
      tails.set(sessionKey, answer)
      answer.then(() => { if (tails.get(sessionKey) === answer) tails.delete(sessionKey) })
      return answer
    }

    // Whatever goes wrong in here must not be OpenClaw's business.
    const on = (hook, handle) => api.on(hook, async (event, ctx) => {
      try { return await handle(event, ctx) } catch {}
    })

    on('before_prompt_build', async ({ prompt, currentUserMessage, messages }, ctx) => {
      runs.set(ctx.runId, { inputProvenance: ctx.inputProvenance, begin: messages?.length })
      const { code, out } = await call('before_prompt_build', { prompt, currentUserMessage }, ctx)
      const { prependContext } = code === 0 ? JSON.parse(out) : {}
      if (typeof prependContext === 'string') return { prependContext }
    })
    on('agent_end', ({ messages, success }, ctx) => {
      const { inputProvenance, begin } = runs.get(ctx.runId) ?? {}
      runs.delete(ctx.runId)
      return call('agent_end', { messages: turn(messages, begin), success }, { ...ctx, inputProvenance: ctx.inputProvenance ?? inputProvenance }, { patience })
    })
    for (const hook of ['before_compaction', 'after_compaction', 'before_reset', 'session_end']) {
      on(hook, ({ reason }, ctx) => call(hook, { reason }, ctx, { patience }))
    }
    on('gateway_stop', () => Promise.all(tails.values()))

    for (const tool of JSON.parse(readFileSync(new URL('tools.json', import.meta.url), 'utf8'))) {
      api.registerTool({
        ...tool,
        label: tool.name,
        async execute(id, args) {
          const job = ['job', tool.name.slice(prefix.length), '--host', 'openclaw']
          const { code, out } = await run(job, JSON.stringify(args ?? {}), { env, limit: toolLimit }) ?? {}
          let said
          try { said = JSON.parse(out) } catch { throw new Error('the memory cannot be reached') }
          const text = typeof said.answer === 'string' ? said.answer : JSON.stringify(said.answer)
          if (code !== 0) throw new Error(text)
          return { content: [{ type: 'text', text }], details: said.metadata }
        },
      })
    }

    const commands = {
      setup: ['connect OpenClaw to the memory', ['install', 'openclaw']],
      status: ['what is remembered and what waits', ['status']],
      doctor: ['what keeps the memory from working', ['doctor', 'openclaw']],
    }
    api.registerCli(({ program }) => {
      const reme = program.command('reme').description('The shared memory of coding agents')
      for (const [name, [description, args]] of Object.entries(commands)) {
        reme.command(name).description(description).action(() => new Promise(resolve => {
          const failed = () => {
            console.error('reme-hook is not on this machine: see https://github.com/agentscope-ai/reme-hook')
            process.exitCode = 1
            resolve()
          }
          spawn(command, args, { stdio: 'inherit' }).on('error', failed).on('close', code => {
            process.exitCode = code
            resolve()
          })
        }))
      }
    }, { commands: ['reme'], descriptors: [{ name: 'reme', description: 'The shared memory of coding agents', hasSubcommands: true }] })
  },
}
