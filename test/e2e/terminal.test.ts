import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { type Home, makeHome, run } from '../harness/gateway.js';

let home: Home;
afterEach(() => home.remove());

describe('coterie chat, with nothing configured', () => {
  it('answers every line of a pipe, remembers what it is told to, and exits 0', async () => {
    home = await makeHome({});
    const chat = run(home, ['chat']);
    chat.write('hello\nremember that I prefer tea\nwhat do you remember?\n');
    chat.endInput();
    expect(await chat.exited).toBe(0);
    const replies = chat
      .out()
      .split('\n')
      .filter((line) => line.startsWith('default: '));
    expect(replies).toHaveLength(3);
    expect(replies[0]).toMatch(/offline/);
    expect(chat.out().slice(chat.out().lastIndexOf('default: '))).toMatch(/tea/);
    expect(await home.read('groups/terminal_local/default/MEMORY.md')).toMatch(
      /## Tier 1 — Long term\n\n.*tea/,
    );
  });

  it('goes on where the last one ended: commands, personas and memory outlive the process', async () => {
    home = await makeHome({});
    const first = run(home, ['chat']);
    first.write('/persona new "Old Bear"\n/persona\n');
    first.endInput();
    expect(await first.exited).toBe(0);
    expect(first.out()).toContain('Created persona Old Bear and switched to it.');
    const second = run(home, ['chat']);
    second.write(
      '/persona\n/persona new ../x\n/persona new memory\n/persona new 😀\n/persona new 小月\n/reset\n',
    );
    second.endInput();
    expect(await second.exited).toBe(0);
    expect(second.out()).toContain('Old Bear: Personas: default, Old Bear (active)');
    expect(second.out()).toContain('Conversation cleared. Principles and per-persona memory are unchanged.');
    expect(existsSync(join(home.folder, 'groups/terminal_local/小月/PERSONA.md'))).toBe(true);
    expect(existsSync(join(home.folder, 'groups/x'))).toBe(false);
  });

  it('says wrong usage and wrong configuration with exit code 2, a failed check with 1', async () => {
    home = await makeHome({ model: { context_tokens: 'many' }, acess: {}, board: { port: 99999 } });
    expect(await run(home, ['chat', '--nonsense']).exited).toBe(2);
    expect(await run(home, ['nonsense']).exited).toBe(2);
    const faulty = run(home, ['chat']);
    expect(await faulty.exited).toBe(2);
    expect(faulty.err()).toContain('model.context_tokens');
    expect(faulty.err()).toContain('board.port');
    const missing = run(home, ['chat', '--config', 'nowhere.yaml']);
    expect(await missing.exited).toBe(2);
    await home.configure({});
    const unknown = run(home, ['pair', 'approve', 'ABCDEFGH']);
    expect(await unknown.exited).toBe(1);
    expect(await run(home, ['--help']).exited).toBe(0);
    expect(await run(home, ['pair', 'list', '--help']).exited).toBe(0);
    expect(await run(home, ['backup', '--version']).exited).toBe(0);
  });

  it('refuses a second gateway on the same data, and lets a chat run beside it', async () => {
    home = await makeHome({ board: { port: 0 } });
    const gateway = run(home, ['start']);
    await gateway.saw('coterie is up');
    const second = run(home, ['start']);
    expect(await second.exited).toBe(2);
    expect(second.err()).toMatch(/is in use by another coterie process/);
    const chat = run(home, ['chat']);
    chat.write('hello\n');
    chat.endInput();
    expect(await chat.exited).toBe(0);
    expect(chat.out()).toMatch(/^default: /);
    expect(await gateway.stop('SIGKILL')).toBeNull();
    const third = run(home, ['start']);
    await third.saw('coterie is up');
    expect(await third.stop()).toBe(0);
  });
});
