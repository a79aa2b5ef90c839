/** The right of who asks, through the route: whose words led to a tool call, and what it may therefore do. */
import { afterEach, describe, expect, it } from 'vitest';
import type { Asker } from '../../src/core/authorisation.js';
import type { InboundMessage } from '../../src/core/message.js';
import type { AnyTool } from '../../src/core/tool.js';
import { type Workbench, type WorkbenchOptions, workbench } from '../harness/conversation.js';

let on: Workbench;
afterEach(() => on.close());

const GROUP = { chat: { address: '-5', kind: 'group' as const, title: 'Garden' }, mentionsBot: true };
const by = (address: string, administrator = false) => ({
  sender: { address, name: address, administrator },
});
const OWNER = by('owner');
const RULES = { owners: ['test_owner'] };

type May = { senders: string[]; isOwner: boolean; mayChange: string };

/** A persona that calls one tool in every turn; what its asker may is kept. */
async function open(options: WorkbenchOptions = {}): Promise<{ asked: string[]; found: May[] }> {
  const asked: string[] = [];
  const found: May[] = [];
  const look = async ({ senders, isOwner, mayChange }: Asker) => {
    const may = { senders: await senders(), isOwner: await isOwner(), mayChange: await mayChange() };
    // Asked again, it is as it was.
    expect(await mayChange()).toBe(may.mayChange);
    return may;
  };
  const tool: AnyTool = {
    ...{ name: 'look', description: 'looks', risk: 'medium', parameters: { type: 'object' } },
    async execute(_parameters, { authorisation }) {
      if (authorisation) found.push(await look(authorisation.asker));
      return { content: 'looked', failed: false };
    },
  };
  on = await workbench({
    ...{ tools: [tool], rules: RULES },
    async isAdministrator(_chat, person) {
      asked.push(person);
      if (person === 'silent') throw new Error('the platform is away');
      return person.startsWith('admin');
    },
    ...options,
  });
  on.answer(({ messages }) =>
    messages.at(-1)?.role === 'tool' ? 'done' : { calls: [{ name: 'look', arguments: {} }] },
  );
  return { asked, found };
}

async function say(text: string, ...more: Partial<InboundMessage>[]): Promise<void> {
  await on.say(text, Object.assign({}, ...more));
  await on.settled();
}

/** As one batch. */
async function sayTogether(...all: Partial<InboundMessage>[]): Promise<void> {
  await Promise.all(all.map((each, n) => on.say(`word ${n}`, { ...GROUP, ...each })));
  await on.settled();
}

describe('the words of a group', () => {
  it.each([
    ['an owner', OWNER, { isOwner: true, mayChange: 'yes' }],
    ['an administrator by the platform', by('admin'), { isOwner: false, mayChange: 'yes' }],
    ['an administrator by the message', by('x', true), { isOwner: false, mayChange: 'yes' }],
    ['a member', by('x'), { isOwner: false, mayChange: 'no' }],
    ['somebody of whom the platform says nothing', by('silent'), { isOwner: false, mayChange: 'unknown' }],
  ])('of %s', async (_who, sender, may) => {
    const { found } = await open();
    await say('hello', GROUP, sender);
    expect(found).toEqual([{ senders: [`test_${sender.sender.address}`], ...may }]);
  });

  it('count as those of the one who may least, where several speak at once', async () => {
    const { found, asked } = await open({ settings: { debounceMs: 30 } });
    await sayTogether(OWNER, by('admin'));
    await sayTogether(by('x'), OWNER);
    await sayTogether(OWNER, OWNER);
    expect(found).toEqual([
      { senders: ['test_owner', 'test_admin'], isOwner: false, mayChange: 'yes' },
      { senders: ['test_x', 'test_owner'], isOwner: false, mayChange: 'no' },
      { senders: ['test_owner'], isOwner: true, mayChange: 'yes' },
    ]);
    // Of owners the platform is asked nothing, of others once a turn.
    expect(asked).toEqual(['admin', 'x']);
  });

  it("from inside the gateway are nobody's", async () => {
    const { found } = await open();
    await say('hello', GROUP, OWNER);
    await on.conversation.tell({
      ...{ id: 'e1', room: 'test_-5', about: 'schedule', text: 'water the roses', personaId: null },
    });
    await on.settled();
    expect(found.at(-1)).toEqual({ senders: [], isOwner: false, mayChange: 'no' });
  });

  it('cost a platform nothing where no tool needs to know', async () => {
    const { asked } = await open({ tools: [] });
    on.answer(() => 'hi');
    await say('hello', GROUP, by('x'));
    expect(asked).toEqual([]);
  });
});

it('in a direct chat whoever writes may change it, without being asked about', async () => {
  const { found, asked } = await open();
  await say('hello');
  expect(found).toEqual([{ senders: ['test_1'], isOwner: false, mayChange: 'yes' }]);
  expect(asked).toEqual([]);
});

it('what only an owner forwards gives no right of an owner', async () => {
  const { found } = await open();
  await say('do it', OWNER, {
    chat: { address: 'owner', kind: 'direct', title: 'Owner' },
    forwardedFrom: 'Eve',
  });
  expect(found).toEqual([{ senders: [], isOwner: false, mayChange: 'yes' }]);
});

describe('what personas say to each other', () => {
  const LOOKS = (text: string) => (request: { messages: { role: string; content: string }[] }) =>
    request.messages.at(-1)?.role === 'tool' ? text : { calls: [{ name: 'look', arguments: {} }] };

  async function company(): Promise<{ found: May[] }> {
    const { found } = await open({ settings: { caps: { rounds: 3, replies: 3 } } });
    for (const command of ['/persona new Luna', '/persona new Max', '/persona invite Luna']) {
      await say(command, GROUP, OWNER);
    }
    return { found };
  }

  it.each([
    ['a member', by('x'), 'no', false],
    ['an owner', OWNER, 'yes', true],
  ] as const)('counts as words of %s who set it off', async (_who, sender, mayChange, isOwner) => {
    const { found } = await company();
    // Each turns to the other, up to the cap.
    on.answer((request) => {
      const isMax = request.messages[0]?.content.includes('persona_id is max');
      return LOOKS(isMax ? 'Luna, your turn' : 'Max, your turn')(request);
    });
    await say('Max, Luna shall do it', GROUP, sender);
    expect(found.length).toBeGreaterThan(2);
    const senders = [`test_${sender.sender.address}`];
    expect(found).toEqual(found.map(() => ({ senders, isOwner, mayChange })));
  });
});

describe('a turn that waited', () => {
  it('has the same asker when it goes on', async () => {
    const found: boolean[] = [];
    const waiting: AnyTool = {
      ...{ name: 'wait', description: 'waits', risk: 'medium', parameters: { type: 'object' } },
      execute: async () => ({ waitsFor: 'w1', until: null }),
    };
    const looking: AnyTool = {
      ...{ name: 'look', description: 'looks', risk: 'medium', parameters: { type: 'object' } },
      async execute(_parameters, { authorisation }) {
        found.push((await authorisation?.asker.isOwner()) === true);
        return { content: 'looked', failed: false };
      },
    };
    on = await workbench({ tools: [waiting, looking], rules: RULES });
    let calls = 0;
    on.answer(() => {
      calls++;
      if (calls > 2) return 'done';
      return { calls: [{ name: calls === 1 ? 'wait' : 'look', arguments: {} }] };
    });
    await say('hello', GROUP, by('x'));
    on.answer((request) => {
      if (request.messages.some(({ content }) => content === 'looked')) return 'done';
      return request.messages.some(({ content }) => content === 'it came')
        ? { calls: [{ name: 'look', arguments: {} }] }
        : 'I hear you';
    });
    // An owner's words beside it lend it nothing.
    await say('and I am here', GROUP, OWNER);
    await on.conversation.resume({ waitsFor: 'w1', content: 'it came', failed: false });
    await on.settled();
    expect(found).toEqual([false]);
  });
});
