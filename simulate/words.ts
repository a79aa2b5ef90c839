/** What is shown of a chat, in words. Pure. */
import type { Place, Platform } from '../test/harness/platform.js';
import { ACCOUNT, type Line, type Sight } from './chat.js';

export interface Printed {
  text: string;
  /** What is new in it, for a screen that cannot replace anything; left out where that is all of it. */
  added?: string;
  /** It goes by itself: whatever comes next takes its place, where the screen can. */
  fleeting?: true;
  /** What stands under the same key last is replaced, where the screen can; null for what stays. */
  key: string | null;
}

export function printedOf(sight: Sight, where: string): Printed {
  switch (sight.kind) {
    case 'typing':
      return { text: `${where}    … ${ACCOUNT} is typing`, key: null, fleeting: true };
    case 'preview':
      return {
        text: `${where}    ${ACCOUNT} (is writing): ${indented(sight.text)} …`,
        key: null,
        fleeting: true,
      };
    case 'gone':
      return { text: `${where}[${sight.line.number}] was taken back`, key: null };
    case 'new':
      return { text: lineOf(sight.line, where, ''), key: `${where}${sight.line.number}` };
    case 'changed':
      return changeOf(sight, where);
  }
}

/** A message that only grew is shown as it is, with what has come to it; any other change is called one. */
function changeOf({ line, before }: Extract<Sight, { kind: 'changed' }>, where: string): Printed {
  const key = `${where}${line.number}`;
  if (!line.text.startsWith(before)) return { text: lineOf(line, where, ' (changed)'), key };
  const added = `${where}[${line.number}] … ${indented(line.text.slice(before.length).trim())}`;
  return { text: lineOf(line, where, ''), added, key };
}

function lineOf({ number, who, via, text, files, replyTo }: Line, where: string, remark: string): string {
  const account = via === null ? '' : ` (${via})`;
  const answers = replyTo === null ? '' : ` to [${replyTo}]`;
  const enclosed = files.map((name) => `    [file: ${name}]`);
  return [`${where}[${number}] ${who}${account}${answers}${remark}: ${indented(text)}`, ...enclosed].join(
    '\n',
  );
}

function indented(text: string): string {
  return text.replaceAll(/\n(?=[^\n])/g, '\n    ');
}

export function nameOf({ name }: Platform, { kind, number }: Place): string {
  return kind === 'direct' ? `${name}, direct` : `${name}, group ${number}`;
}

export const HELP = `Whatever you type is said in the chat, and / begins the product's own commands (/help). For the simulator:
  :platform NAME       telegram, discord or whatsapp
  :group N  :direct    a group, or your own chat with the account
  :as NAME             who you are; anybody
  :mention TEXT        says it with the platform's own mention of the account
  :reply WHICH TEXT    answers a message: its number, last, or @NAME for somebody's newest
  :edit WHICH TEXT     changes it        :delete WHICH   takes it back
  :react WHICH EMOJI   puts a sign to a message of the account
  :photo FILE TEXT     says it with a picture; :album FILE FILE TEXT with several; both also behind :reply WHICH
  :forward NAME TEXT   passes on what somebody said elsewhere
  :say TEXT            says what begins with : or #
  :kill                kill -9 of the gateway, and starts it again
  :log                 what the gateway complained of
  :settle              waits until nothing more comes
  :expect TEXT         waits for a message of the account with these words; also /PATTERN/, and @NAME before either
  :never TEXT          fails if the account has said that here
  :quit`;
