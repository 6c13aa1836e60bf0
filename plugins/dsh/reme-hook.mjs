// The shared memory of coding agents in DSH, version 0.1.0. Made by reme-hook, which replaces this file: do not edit it.
//
// Each event is a child, `reme-hook dsh <event>`, with JSON on its stdin; what is to be done is decided there. A child
// that is missing, fails, hangs or answers with anything but JSON is as good as none.
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'

export const name = 'reme-hook'

const limit = 3000 // ms for a hook, and for all that DSH has to wait for; reme-hook itself ends after 2900
const toolLimit = 10000 // ms for a tool; reme-hook itself ends after 8000
const prefix = 'reme_' // of the tools' names
const group = process.platform !== 'win32'
const isSubagent = session => session.header?.origin === 'subagent'
const isText = block => block.type === 'text' && block.text

export function apply(ctx, config) {
  try { connect(ctx, config ?? {}) } catch {}
}

function connect(ctx, config) {
  const tails = new Map() // of each session the last child: they run one after the other
  const lost = new WeakMap() // of a session that was compacted: the turn, and the answer about it
  const ending = new Set() // sessions of which that is told
  const running = new Set() // what stops the children that run
  let closed = false

  // Runs a child; how it ends and what it prints.
  const run = (args, input, limit) => new Promise(resolve => {
    if (closed) return resolve()
    const child = spawn(config.command ?? 'reme-hook', args, { stdio: ['pipe', 'pipe', 'ignore'], detached: group, windowsHide: true })
    let out = ''
    const stop = () => {
      // Whoever holds the pipe keeps DSH from exiting: the whole group goes.
      try { group ? process.kill(-child.pid, 'SIGKILL') : child.kill() } catch {}
      child.stdin?.destroy()
      child.stdout?.destroy()
      child.unref()
      end()
    }
    const timer = setTimeout(stop, limit)
    const end = code => {
      clearTimeout(timer)
      running.delete(stop)
      resolve({ code, out })
    }
    child.on('error', stop)
    child.on('close', end)
    running.add(stop)
    child.stdout.on('error', stop).setEncoding('utf8').on('data', text => {
      out += text
      if (out.length > 1e6) stop()
    })
    child.stdin.on('error', stop).end(input)
  }).catch(() => {})

  // Tells reme-hook of an event; its answer.
  const tell = async (event, session, more) => {
    try {
      const { cwd, origin } = session.header ?? {}
      const { code, out } = await run(['dsh', event], JSON.stringify({ event, session_id: session.id, cwd, origin, ...more }), limit)
      if (code === 0) return JSON.parse(out)
    } catch {}
  }

  const call = (event, session, more) => {
    const answer = (tails.get(session) ?? Promise.resolve()).then(() => tell(event, session, more))
    tails.set(session, answer)
    return answer
  }

  // Waits for an answer no longer than is bearable. The child goes on: it may have something to store.
  const within = (answer, signal, patience = limit) => new Promise(resolve => {
    const timer = setTimeout(resolve, patience)
    const done = value => { clearTimeout(timer); resolve(value) }
    signal?.addEventListener('abort', () => done(), { once: true })
    answer.then(done)
  })

  // Whatever goes wrong in here must not be DSH's business.
  const on = (event, handle) => ctx.on(event, (...args) => { try { handle(...args) } catch {} })

  on('agent/session-start', ({ agent: { session }, source }) => {
    if (!isSubagent(session)) call('session-start', session, { source })
  })

  const recall = async ({ agent: { session }, turn, signal }, { kind, messages }) => {
    if (kind !== 'enter' || signal.aborted || isSubagent(session)) return []
    const answers = []
    if (lost.get(session)?.turn === turn) answers.push(lost.get(session).answer)
    lost.delete(session)
    for (const { id, source, content } of messages) {
      if (source?.kind === 'user') answers.push(call('pre-step', session, { turn, message_id: id, prompt: content }))
    }
    const given = await within(Promise.all(answers), signal) ?? []
    return given.map(answer => answer?.context).filter(text => typeof text === 'string')
  }
  ctx.on('agent/pre-step', async (event, next) => {
    const decision = await next() // a compaction happens in there
    const memories = await recall(event, decision).catch(() => [])
    if (memories.length === 0) return decision
    const source = { kind: 'plugin', plugin: name, form: 'recall' }
    const message = text => Object.freeze({ role: 'user', id: randomUUID(), content: [{ type: 'text', text }], source })
    return { ...decision, messages: [...decision.messages, ...memories.map(message)] }
  }, { prepend: true })

  on('session/event', (session, { type, data }) => {
    if (isSubagent(session)) return
    const { turn } = data
    if (type === 'turn/end') {
      const said = session.events.findLast(e => e.type === 'assistant/message' && e.data.turn === turn && !e.data.interrupted && e.data.message.content.some(isText))
      call('turn-end', session, { turn, reply: said?.data.message.content.filter(isText) })
    }
    if (type === 'compaction/start') call('pre-compact', session, { turn })
    if (type === 'compaction/summary') call('post-compact', session, { summary: data.summary })
    if (type === 'compaction/end' && !data.error) {
      // It may have left what was recalled in the running turn, at the end of the conversation.
      const { events, surface } = session
      const begin = events.findLast(e => e.type === 'turn/start')?.seq
      const kept = surface.nodes.some(seq => seq > begin && events[seq].data.source?.plugin === name)
      lost.set(session, { turn, answer: call('session-start', session, { source: 'compact', compaction_id: data.compactionId, turn, kept }) })
    }
  })

  const guard = async exec => {
    if (exec.agent && JSON.stringify(exec.arguments)?.includes('reme://')) {
      return (await within(tell('pre-execute', exec.agent.session, { tool: exec.name, arguments: exec.arguments }), exec.signal))?.deny
    }
  }
  ctx.on('tools/pre-execute', async (exec, next) => {
    const reason = await guard(exec).catch(() => {})
    return typeof reason === 'string' ? { kind: 'deny', reason } : next()
  })

  ctx.inject(['tools'], ctx => {
    try {
      for (const tool of JSON.parse(readFileSync(new URL('tools.json', import.meta.url), 'utf8'))) {
        ctx.tools.register({
          ...tool,
          output: { schema: { type: 'string' }, render: (args, text) => [{ type: 'text', text }] },
          async execute(args, { signal }) {
            const job = ['job', tool.name.slice(prefix.length), '--host', 'dsh']
            const { code, out } = await within(run(job, JSON.stringify(args ?? {}), toolLimit), signal, toolLimit) ?? {}
            let said
            try { said = JSON.parse(out) } catch { throw new Error('the memory cannot be reached') }
            const text = typeof said.answer === 'string' ? said.answer : JSON.stringify(said.answer)
            if (code !== 0) throw new Error(text)
            return text
          },
        })
      }
    } catch {}
  })

  const end = session => {
    if (ending.has(session) || !tails.has(session)) return
    ending.add(session)
    call('session-end', session).then(() => { ending.delete(session); tails.delete(session) })
  }
  on('session/disposed', end)

  ctx.effect(() => async () => {
    for (const session of tails.keys()) end(session)
    await within(Promise.all(tails.values()))
    closed = true
    for (const stop of running) stop()
  }, name)
}
