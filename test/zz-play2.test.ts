import { writeFile } from 'node:fs/promises';
import { afterEach, it } from 'vitest';
import type { ChatBody } from './fakes/model.js';
import { ANNA, group } from './fakes/telegram-chats.js';
import { eventually } from './harness/gateway.js';
import { stage } from './harness/telegram.js';
import { discordPlatform } from './harness/discord.js';
import { whatsappPlatform } from './harness/whatsapp.js';
import { stageOn } from './harness/stage.js';
const CHAT = `telegram_${ANNA.id}`;
let on: { close(): Promise<void> };
const OUT: string[] = [];
const log = (...s: unknown[]) => OUT.push(s.map((x) => (typeof x === 'string' ? x : JSON.stringify(x, null, 1))).join(' '));
afterEach(async () => { await on.close(); await writeFile('/work/tmp/r4/out2.txt', OUT.join('\n')); });
const task = (title: string) => ({ viap_version: '3', type: 'VIAP_V3_TASK', task_id: `id_${title}`, title, goal: 'The goal of ' + title, instructions: ['Count them'] });
const report = (title: string) => ({ viap_version: '3', type: 'VIAP_V3_REPORT', task_id: `id_${title}`, success: true, summary: 'There are 3 notes', steps: [] });
const scripted = (seen: Record<string, ChatBody>) => (body: ChatBody) => {
  const last = body.messages.at(-1);
  if (String(body.messages[0]?.content).includes('You are the agent')) {
    const title = /id_(\w+)/.exec(JSON.stringify(body.messages))?.[1] ?? '';
    if (last?.role !== 'tool') return { calls: [{ name: 'shell', arguments: { command: 'echo 3 > count.txt && cat count.txt' } }] };
    return JSON.stringify(report(title));
  }
  const said = String(body.messages.findLast(({ role }) => role === 'user')?.content ?? '');
  if (said.includes('Memory flush')) return 'done';
  if (last?.role === 'tool') return 'I have it looked into.';
  if (said.includes('<task_completed')) { seen.told = body; return 'PROSE of ' + /“(.*?)”/.exec(said)?.[1]; }
  const m = /do (\w+)/.exec(said);
  if (m) { seen.ask = body; return { calls: [{ name: 'sessions_spawn', arguments: { agentId: 'utility', task: task(m[1] as string) } }] }; }
  if (said.includes('deltas')) { seen.deltas = body; return { text: `Here is the plan.\n\n\`\`\`json\n${JSON.stringify({ artifact_deltas: [{ id: 'plan', title: 'The plan', type: 'text/markdown', content: '# Plan\nlots of words\n' }, { id: 'r', title: 'Report', ref: 'https://example.org/x' }] })}\n\`\`\`\n\nThat is it.`, chunkSize: 8, chunkDelayMs: 120 }; }
  seen.plain = body; return 'hello';
};
it('topic', async () => {
  const st = await stage({ config: { access: { direct: 'open', groups: 'open', owners: [CHAT], control_chats: [CHAT], require_mention: false }, tools: { allow: ['memory', 'agents', 'files', 'shell', 'artifacts', 'skills', 'clipboard'], shell: { sandbox: 'none' } } } });
  on = st;
  await st.home.write('data/skills/trip/SKILL.md', '---\nname: trip\ndescription: Plans a trip.\n---\nAsk.');
  await st.home.write('data/workspace/task.md', '# Move\n- [ ] pack\n');
  await st.home.write('data/workspace/USER.md', 'Anna likes tea');
  await st.home.write('data/workspace/AGENTS.md', 'Workspace rules ```js\nx\n```');
  await st.home.write('data/workspace/MEMORY.md', 'workspace memory here');
  await st.home.write('data/workspace/memory/2026-11-23.md', 'today in workspace');
  await st.home.write(`groups/AGENTS.md`, 'Be kind.');
  await st.home.write(`groups/${CHAT}/default/MEMORY.md`, '# Memory\n\n## Tier 1 — Long term\n\nAnna has notes\n');
  await st.home.write(`data/clipboard/${CHAT}/default.md`, '- a clip\n');
  const seen: Record<string, ChatBody> = {};
  st.model.reply(scripted(seen) as never);
  const g = await st.start();
  const wait = async (f: () => boolean, w: string) => { try { await eventually(f, w); } catch { log('!!!', w); } };
  const G = group(-1001234567890, 'Garden');
  st.telegram.say({ text: 'plain', from: ANNA }); await wait(() => st.sentTo(ANNA.id).length > 0, 'plain');
  st.telegram.say({ chat: G, topic: 5, text: 'do ingroup' });
  await wait(() => st.sentTo(ANNA.id).some((t) => t.includes('/approve')), 'q');
  const id = /\/approve ([A-Z0-9]+)/.exec(st.sentTo(ANNA.id).join(' '))?.[1];
  st.telegram.say({ text: '/status' }); await wait(() => st.sentTo(ANNA.id).length > 2, 'status');
  st.telegram.say({ text: `/approve ${id}` });
  await wait(() => st.sentTo(G.id).some((t) => t.startsWith('PROSE')), 'prose');
  log('PRIVATE', st.sentTo(ANNA.id)); log('GROUP', st.telegram.sent.filter((s) => s.chatId === G.id).map((s) => [s.text, (s as { threadId?: unknown; topic?: unknown })]));
  st.telegram.say({ chat: G, topic: 5, text: 'deltas please' });
  await wait(() => st.telegram.sent.filter((s) => s.chatId === G.id).length >= 5, 'deltas');
  log('DELTA calls', st.telegram.calls.filter(({ method }) => /send|edit/i.test(method)).slice(-14).map((c) => [c.method, JSON.stringify((c as { body?: unknown; payload?: unknown; params?: unknown }).payload ?? (c as { body?: unknown }).body ?? c).slice(0, 300)]));
  for (const [k, b] of Object.entries(seen)) { log('\n##### REQUEST ' + k); for (const m of b.messages) log(`[${m.role}]`, String(m.content)); log(JSON.stringify(b.tools?.filter((t) => /spawn|artifact|skill/.test(t.function.name)), null, 1)); }
  await g.stop();
}, 60_000);
it.each([['Discord', discordPlatform], ['WhatsApp', whatsappPlatform]] as const)('%s', async (name, of) => {
  const p = await of();
  const A = { number: 1, name: 'Anna' }; const D = { kind: 'direct' as const, number: 1 };
  const st = await stageOn(p, { access: { direct: 'open', groups: 'open', owners: [p.personId(A)] }, tools: { allow: ['memory', 'agents', 'files', 'shell', 'artifacts', 'skills'], shell: { sandbox: 'none' } } } as never);
  on = st;
  st.model.reply(scripted({}) as never);
  const g = await st.start();
  const wait = async (f: () => boolean, w: string) => { try { await eventually(f, w); } catch { log('!!!', w); } };
  p.say({ from: A, in: D, text: 'do thing' });
  await wait(() => p.shown(D).some((t) => t.text.includes('/approve')), 'q');
  const q = p.shown(D).find((t) => t.text.includes('/approve'));
  if (p.press && q) p.press(A, D, q.id, 'Allow'); else p.command(A, D, `/approve ${/\/approve ([A-Z0-9]+)/.exec(q?.text ?? '')?.[1]}`);
  await wait(() => p.shown(D).some((t) => t.text.startsWith('PROSE') || t.text.includes('PROSE')), 'prose');
  log('=== ' + name); for (const t of p.shown(D)) log('--> ' + t.text, JSON.stringify(t.buttons ?? []));
  const n = p.shown(D).length; p.say({ from: A, in: D, text: 'deltas please' });
  await wait(() => p.shown(D).length >= n + 2, 'deltas'); for (const t of p.shown(D).slice(n)) log('--> ' + t.text, JSON.stringify(t.files));
  await g.stop();
}, 60_000);
