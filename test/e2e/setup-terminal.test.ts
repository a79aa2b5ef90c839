/** The setup in the terminal: the same steps as questions. */
import { spawn } from 'node:child_process';
import { resolve } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { eventually, run } from '../harness/gateway.js';
import { type Stage, stage } from '../harness/telegram.js';

const MAIN = resolve(import.meta.dirname, '../../dist/main.js');

let on: Stage;
afterEach(() => on.close());

/** A person at a terminal: types each answer when its question is there. */
async function atTerminal(folder: string, dialogue: [question: string, answer: string][]): Promise<string> {
  const child = spawn('script', ['-qec', `${process.execPath} ${MAIN} setup`, '/dev/null'], { cwd: folder });
  let shown = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text;
  });
  const ended = new Promise<void>((done) => child.on('close', () => done()));
  let from = 0;
  for (const [question, answer] of dialogue) {
    await eventually(() => shown.includes(question, from), `it asks ${question}: ${shown}`);
    from = shown.indexOf(question, from) + question.length;
    // The prompt reads only after it is drawn.
    await new Promise((wait) => setTimeout(wait, 200));
    child.stdin.write(`${answer}\r`);
  }
  await ended;
  return shown;
}

describe('coterie setup', () => {
  it('refuses without a terminal, with what to do instead', async () => {
    on = await stage();
    const setup = run(on.home, ['setup']);
    expect(await setup.exited).toBe(2);
    expect(setup.err()).toMatch(
      /^coterie: coterie setup asks questions, so it needs a terminal\. .*config\.yaml/,
    );
  });

  it('asks for model, token and persona, and writes what works', async () => {
    on = await stage();
    const base = `# mine\nboard: { port: 0 }\nchannels:\n  telegram: { api_root: "${on.telegram.url}" }\n`;
    await on.home.write('config.yaml', base);
    const shown = await atTerminal(on.home.folder, [
      ['its address:', on.model.url],
      ['Model:', 'scripted'],
      ['Key', 'sk-typed-at-a-terminal'],
      ['Telegram:', '1:wrong'],
      ['Telegram:', on.telegram.token],
      ['Discord:', ''],
      ['WhatsApp?', 'n'],
      ['its name:', 'Luna'],
      ['character', 'Kind.'],
    ]);
    expect(shown).toContain('scripted works.');
    expect(shown).toContain('401');
    expect(shown).toMatch(/It is @\w+/);
    expect(shown).toContain('Luna is there.');
    expect(shown).not.toContain(on.telegram.token);
    expect(shown).not.toContain('sk-typed');
    const written = await on.home.read('config.yaml');
    expect(written).toContain('# mine\nboard: { port: 0 }\n');
    expect(written).toContain(`token: ${on.telegram.token}`);
    expect(written).toContain('api_key: sk-typed-at-a-terminal');
    expect(await on.home.read('groups/board_main/luna/PERSONA.md')).toContain('Kind.');
  });
});
