// Stands where DSH's one-shot runner stands, and gives several prompts to one session, which it may resume. "/compact" is
// a compaction, "/fork" goes on in a fork of the session. It prints the reply to each prompt as a line of JSON.
import { randomUUID } from 'node:crypto'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

export const name = 'contract-driver'
export const inject = ['agentDefaultModel', 'agents', 'sessions']

export function apply(ctx, { prompts, session, resume, anchor }) {
  const exit = ctx.get('appExit')
  run().then(exit, error => { console.error(error); exit(1) })

  async function run() {
    await ctx.get('loader')?.await()
    const { installModelSelection } = await import(pathToFileURL(createRequire(anchor).resolve('@deepseek-ai/dsh-agent')))
    const current = ctx.get('agentDefaultModel').currentSelection()
    const options = {
      agentOptions: { provider: current.provider, model: current.model },
      setup: agentCtx => { installModelSelection(agentCtx, { current, assembled: undefined }) },
    }
    let { agent } = resume
      ? await ctx.get('agents').resume({ resumeSessionId: session, ...options })
      : await ctx.get('agents').create({ sessionId: session, meta: { cwd: process.cwd() }, ...options })
    await agent.whenIdle()
    let code = 0
    for (const text of prompts) {
      if (text === '/compact') {
        await ctx.get('compaction').compactNow(agent, new AbortController().signal)
        continue
      }
      if (text === '/fork') {
        const seed = [...agent.session.events]
        const meta = { cwd: process.cwd(), parentSession: session, seedLength: seed.length }
        agent = (await ctx.get('agents').create({ sessionId: `session-${randomUUID()}`, seed, meta, ...options })).agent
        await agent.whenIdle()
        continue
      }
      const begin = agent.session.seq
      agent.followup(Object.freeze({ role: 'user', id: randomUUID(), content: [{ type: 'text', text }], source: { kind: 'user' } }))
      await agent.whenIdle()
      await ctx.get('sessions').flush(agent.session)
      const events = agent.session.events.filter(e => e.seq >= begin)
      const said = events.filter(e => e.type === 'assistant/message').map(e => e.data.message.content.filter(b => b.type === 'text').map(b => b.text).join(''))
      if (events.findLast(e => e.type === 'turn/end')?.data.reason.kind !== 'completed') code = 1
      console.log(JSON.stringify({ reply: said.filter(Boolean).at(-1) ?? '' }))
    }
    return code
  }
}
