import { writeFile } from 'node:fs/promises';
import { afterEach, it } from 'vitest';
import type { ChatBody } from './fakes/model.js';
import { ANNA } from './fakes/telegram-chats.js';
import { eventually } from './harness/gateway.js';
import { type Stage, stage } from './harness/telegram.js';
const CHAT = `telegram_${ANNA.id}`;
let on: Stage;
afterEach(() => on.close());
const OUT: string[] = [];
const log = (...s: unknown[]) => OUT.push(s.map((x) => (typeof x === 'string' ? x : JSON.stringify(x, null, 1))).join(' '));
const task = (title: string) => ({ viap_version: '3', type: 'VIAP_V3_TASK', task_id: `id_${title}`, title, goal: 'The goal of ' + title, instructions: ['Count them'], inputs: { env: { API_KEY: 'sekretwert12' } } });
const report = (title: string, success = true) => ({ viap_version: '3', type: 'VIAP_V3_REPORT', task_id: `id_${title}`, success, summary: success ? 'There are 3 notes' : 'The disk is full', steps: [{ what: 'looked' }], artifacts: [{ path: 'count.txt', description: 'the number', sha256: null }], errors: success ? [] : [{ where: 'df', message: 'no space left' }], next_actions: ['Delete old archives'] });
it('plays', async () => {
  on = await stage({
    config: {
      access: { direct: 'open', owners: [CHAT], control_chats: [CHAT], require_mention: false },
      tools: { allow: ['memory', 'agents', 'files', 'shell', 'artifacts', 'skills'], shell: { sandbox: 'none' } },
      approvals: { minutes: 0.03 },
    },
  });
  await on.home.write('data/skills/trip/SKILL.md', '---\nname: trip\ndescription: Plans a trip. Use when travelling.\n---\nAsk.');
  await on.home.write('data/workspace/task.md', '# Move\n- [ ] pack\n');
  await on.home.write('data/workspace/USER.md', 'Anna likes tea');
  await on.home.write('data/workspace/MEMORY.md', 'workspace memory here');
  await on.home.write('data/skills/bad/SKILL.md', 'no front matter');
  await on.home.write(`groups/AGENTS.md`, 'Be kind.');
  await on.home.write(`groups/${CHAT}/default/MEMORY.md`, '# Memory\n\n## Tier 1 — Long term\n\nAnna has notes\n');
  await on.home.write(`data/workspace/memory/2026-11-23.md`, 'today in workspace');
  await on.home.write(`groups/${CHAT}/memory/2026-11-23.md`, 'today in chat');
  let mode = 'ok';
  let failTelling = false;
  const seen: Record<string, ChatBody> = {};
  const releases = new Map<string, () => void>();
  on.model.reply(async (body) => {
    const sys = body.messages[0]?.content ?? '';
    const last = body.messages.at(-1);
    const isAgent = String(sys).includes('You are the agent');
    if (isAgent) {
      const all = JSON.stringify(body.messages);
      const title = /id_(\w+)/.exec(all)?.[1] ?? '';
      seen[`agent-${title}-${body.messages.length}`] ??= body;
      if (mode === 'shell' && last?.role !== 'tool') return { calls: [{ name: 'shell', arguments: { command: 'echo 3 > count.txt && cat count.txt' } }] };
      if (title.startsWith('slow')) await new Promise<void>((r) => releases.set(title, r));
      if (mode === 'modelfail') return { status: 500, text: 'x' } as never;
      return JSON.stringify(report(title, mode !== 'fail'));
    }
    const said = String(body.messages.findLast(({ role }) => role === 'user')?.content ?? '');
    if (last?.role === 'tool') return 'I have it looked into.';
    if (said.includes('<task_completed')) { seen[`told-${mode}`] = body; if (failTelling) return { status: 400, text: 'no' } as never; return 'PROSE of ' + /“(.*?)”/.exec(said)?.[1]; }
    const two = /two (\w+) (\w+)/.exec(said);
    if (two) return { calls: [two[1], two[2]].map((t) => ({ name: 'sessions_spawn', arguments: { agentId: 'utility', task: task(t as string) } })) };
    const m = /do (\w+)/.exec(said);
    if (m) { seen.ask = body; return { calls: [{ name: 'sessions_spawn', arguments: { agentId: 'utility', task: task(m[1] as string) } }] }; }
    return 'hello';
  });
  const g = await on.start();
  const wait = async (f: () => boolean, what: string) => { try { await eventually(f, what); } catch (e) { log('!!! ', what); } };
  const count = () => on.sentTo(ANNA.id).length;
  const show = (what: string, from: number) => { log('=== ' + what); for (const t of on.sentTo(ANNA.id).slice(from)) log('--> ' + t); };
  let n = count();
  const round = async (what: string, text: string, want: number) => { n = count(); on.telegram.say({ text }); await wait(() => count() >= n + want, what); show(what, n); };
  await round('ok', 'do alpha', 2);
  mode = 'fail'; await round('fail', 'do beta', 2);
  mode = 'fail'; failTelling = true; await round('telling fails of a failure', 'do gamma', 2);
  mode = 'ok'; await round('telling fails', 'do delta', 2); failTelling = false;
  mode = 'modelfail'; await round('model fails', 'do epsi', 2);
  mode = 'ok'; n = count(); on.telegram.say({ text: 'two slow1 slow2' });
  await wait(() => releases.size === 2, 'two run'); 
  await round('status', '/status', 1); await round('stop', '/stop', 1); await round('stop2','/skills', 1);
  releases.get('slow2')?.(); await wait(() => on.sentTo(ANNA.id).some((t) => t.includes('PROSE of slow2')), 's2'); releases.get('slow1')?.(); await wait(() => on.sentTo(ANNA.id).some((t) => t.includes('PROSE of slow1')), 's1'); show('two', n);
  n = count(); on.telegram.say({ text: 'do slow3' }); await wait(() => releases.has('slow3'), 's3'); await round('reset', '/reset', 1); releases.get('slow3')?.();
  await round('after reset', 'hi', 1);
  mode = 'shell'; n = count(); on.telegram.say({ text: 'do zeta' }); await wait(() => on.sentTo(ANNA.id).slice(n).some((t) => t.startsWith('PROSE')), 'expired'); show('shell expired', n);
  n = count(); on.telegram.say({ text: 'do eta' }); await wait(() => on.sentTo(ANNA.id).slice(n).some((t) => t.includes('/deny')), 'q');
  const id = /\/deny ([A-Z0-9]+)/.exec(on.sentTo(ANNA.id).slice(n).join(' '))?.[1];
  on.telegram.say({ text: `/deny ${id}` }); await wait(() => on.sentTo(ANNA.id).slice(n).some((t) => t.startsWith('PROSE')), 'denied'); show('denied', n);
  n = count(); on.telegram.say({ text: 'do theta' }); await wait(() => on.sentTo(ANNA.id).slice(n).some((t) => t.includes('/approve')), 'q');
  const id2 = /\/approve ([A-Z0-9]+)/.exec(on.sentTo(ANNA.id).slice(n).join(' '))?.[1];
  on.telegram.say({ text: `/approve ${id2}` }); await wait(() => on.sentTo(ANNA.id).slice(n).some((t) => t.startsWith('PROSE')), 'approved'); show('approved', n);
  mode = 'ok'; await round('new persona', '/persona new Luna', 1);
  n = count(); on.telegram.say({ text: 'do slow4' }); await wait(() => releases.has('slow4'), 's4'); await round('switch', '/persona switch default', 1); await round('delete', '/persona delete Luna', 1); releases.get('slow4')?.(); await wait(() => on.sentTo(ANNA.id).slice(n).some((t) => t.startsWith('PROSE')), 'deleted'); show('deleted', n);
  await round('help', '/help', 1);
  for (const [k, b] of Object.entries(seen)) { log('\n##### REQUEST ' + k + ' tools ' + (b.tools ?? []).map((t) => t.function.name)); for (const m of b.messages) log(`[${m.role}]`, typeof m.content === 'string' ? m.content : m, JSON.stringify((m as {tool_calls?: unknown}).tool_calls ?? '')); }
  const wl = await on.home.read('data/working.log'); log('JOURNAL', (wl ?? '').slice(0, 9000));
  await writeFile('/work/tmp/r4/out.txt', OUT.join('\n'));
  await g.stop();
}, 90_000);
