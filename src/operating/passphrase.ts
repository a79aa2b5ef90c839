/** The passphrase of an encrypted backup: from the environment, or asked at the terminal without showing it. */
import { Fault } from '../core/errors.js';

const VARIABLE = 'COTERIE_PASSPHRASE';
const FEWEST_CHARACTERS = 8;

const CTRL_C = '\u0003';
const CTRL_D = '\u0004';
const DELETE = ['\u007f', '\b'];

/** `again`: it is new, and asked twice. Throws Fault where there is none, or a short one. */
export async function askPassphrase(again: boolean, input = process.stdin): Promise<string> {
  const given = process.env[VARIABLE];
  if (given !== undefined && given !== '') return longEnough(given);
  if (!input.isTTY) {
    throw new Fault('configuration', `A passphrase is needed: set ${VARIABLE}, or run this at a terminal.`);
  }
  const first = longEnough(await hidden('Passphrase: ', input));
  if (again && (await hidden('Once more: ', input)) !== first) {
    throw new Fault('configuration', 'The two passphrases differ; nothing was done.');
  }
  return first;
}

function longEnough(passphrase: string): string {
  if (Array.from(passphrase).length >= FEWEST_CHARACTERS) return passphrase;
  throw new Fault('configuration', `A passphrase has at least ${FEWEST_CHARACTERS} characters.`);
}

function hidden(question: string, input: typeof process.stdin): Promise<string> {
  process.stderr.write(question);
  input.setRawMode(true);
  input.setEncoding('utf8');
  input.resume();
  return new Promise((resolve, reject) => {
    let typed = '';
    function end(): void {
      input.off('data', take);
      input.setRawMode(false);
      input.pause();
      process.stderr.write('\n');
    }
    function take(keys: string): void {
      for (const key of keys) {
        if (key === CTRL_C || key === CTRL_D) {
          end();
          reject(new Fault('configuration', 'No passphrase was given; nothing was done.'));
          return;
        }
        if (key === '\r' || key === '\n') {
          end();
          resolve(typed);
          return;
        }
        typed = DELETE.includes(key) ? Array.from(typed).slice(0, -1).join('') : typed + key;
      }
    }
    input.on('data', take);
  });
}
