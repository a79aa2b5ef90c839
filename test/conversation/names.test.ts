/** Names are anybody's words: in what the gateway says they are their letters, on every platform, and nothing else. */
import { afterEach, describe, expect, it } from 'vitest';
import { compose as discord } from '../../src/channels/discord/outbound.js';
import { compose as telegram } from '../../src/channels/telegram/outbound.js';
import { compose as whatsapp } from '../../src/channels/whatsapp/outbound.js';
import { nameInWords } from '../../src/conversation/quoting.js';
import { type Workbench, workbench } from '../harness/conversation.js';

const HOSTILE = [
  '[me](https://evil.example/x)',
  'https://evil.example',
  'notes.md',
  '@everyone',
  '<@100000000000000001>',
  '**Anna**',
  '_a_',
  '`Anna`',
  '``',
  '||x||',
  '<b>Anna</b>',
  '+49 170 1234567',
  '4917012345678',
  '# Anna',
  '/reset',
  'tg://user?id=1',
  '$x$',
];

describe('a name in words of the gateway', () => {
  it.each(HOSTILE)('is its letters, and no link, mention or mark: %s', (name) => {
    const said = `You are ${nameInWords(name)} now.`;
    for (const compose of [telegram, discord, whatsapp]) {
      const [part] = compose(said);
      expect(part?.text).toBe(`You are ${name} now.`);
      expect(part?.marks.map(({ kind }) => kind)).toEqual(['code']);
    }
  });

  it.each(['Anna', 'Åsa-Lena', 'O’Neill', '小月', 'Йога 2', 'Luna 🌙', 'عمر'])(
    'stands as it is: %s',
    (name) => {
      expect(nameInWords(name)).toBe(name);
    },
  );

  it('is one line, and has an end', () => {
    expect(nameInWords('a\n\n# b')).toBe('`a # b`');
    expect(nameInWords('x'.repeat(500))).toHaveLength(62);
    expect(nameInWords(' \n')).toBe('`?`');
  });
});

describe('commands', () => {
  let on: Workbench;
  afterEach(() => on.close());

  it('/whoami, and the personas that somebody made', async () => {
    on = await workbench({});
    const link = '[x](https://evil.example)';
    await on.say('/whoami', { sender: { address: '77', name: link, administrator: false } });
    await on.settled();
    expect(on.texts().at(-1)).toContain('You are `[x](https://evil.example)` (');
    await on.say('/persona new notes.md');
    await on.settled();
    await on.say('/persona');
    await on.settled();
    expect(on.texts().join('\n')).toContain('`notes.md` (active)');
  });
});
