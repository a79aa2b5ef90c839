/** A gateway that somebody has lived with for a while, so that no place of the page is empty: a weekend is planned. */
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect } from 'vitest';
import { type ChatBody, lastUserText, type ModelScript } from '../fakes/model.js';
import { eventually } from '../harness/gateway.js';
import { type Board, seed } from './board.js';

const STARS = `From the jetty you look south, where it is darkest. On Friday, an hour after sunset:

| Star | Where | Look for |
|---|---|--:|
| Sirius | low in the south | −1.46 mag |
| Regulus | rising in the east | 1.35 mag |

Take the **red** torch along: white light costs your eyes twenty minutes.`;

const COUNTING = `Count only what the eye can see; the catalogue holds far more:

\`\`\`python
def visible(stars, limit=6.5):
    """Those bright enough for the eye."""
    return [star for star in stars if star.magnitude <= limit]
\`\`\`

Dark skies help **more** than any telescope.`;

const STORY = `One, then. In the fog a man asked me how I knew where the other side was. I said: it was there this morning. He thought about that until we landed.`;

const NEXT_STEPS = `Three things, and the first can be done today.

1. **Today:** ask Ben for the key of the boat shed.
2. **Thursday:** shop for three, without meat for Ann.
3. **Friday, 15:00:** leave, so that you arrive before dark.

The road behind the mill is what may go wrong. Look it up before you leave.`;

const PLANS = [
  '- To the hut by the lake from Friday to Sunday, with Ann and Ben',
  '- Ann eats no meat; Ben brings the boat',
  '- Leave on Friday at 15:00',
].join('\n');
const NIGHT = '- Friday night on the jetty: Sirius and Regulus';
const LASTING = '- Drinks tea without sugar\n- Sees badly in the dark, and likes it all the same';
const MUSED = '- Has never seen the Milky Way; this would be the weekend for it';

const LIST = `# What to take

| | Who | Packed |
|---|---|---|
| Red torch, binoculars | You | yes |
| Food for three, no meat | Ann | |
| Boat, life jackets | Ben | |

The hut has plates, blankets and **one** lamp. Water comes from the well, 200 m up the path.
`;
const MAP = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 480 300" font-family="sans-serif" font-size="14">
  <rect width="480" height="300" fill="#e9efe2"/>
  <path d="M190 70C280 20 430 60 450 150S340 290 250 260 120 120 190 70Z" fill="#a9cfdd"/>
  <path d="M30 280C80 230 60 160 120 120S170 40 240 30" fill="none" stroke="#8a6a3a" stroke-width="4" stroke-dasharray="10 6"/>
  <circle cx="240" cy="30" r="7" fill="#b5432d"/><circle cx="30" cy="280" r="7" fill="#27241f"/>
  <g fill="#27241f"><text x="256" y="28">the hut</text><text x="46" y="288">the mill</text><text x="290" y="160">the lake</text></g>
</svg>`;
const DELTAS = [
  { id: 'packing-list.md', title: 'What to take', content: LIST },
  { id: 'path.svg', title: 'The path to the hut', type: 'image/svg+xml', content: MAP },
];

const schedule = (schedule_value: string, prompt: string): ModelScript => ({
  calls: [
    { id: 'schedule', name: 'schedule_task', arguments: { schedule_type: 'cron', schedule_value, prompt } },
  ],
});
const tier = (n: number, content: string): ModelScript => ({
  calls: [{ id: `tier-${n}`, name: 'write_tiered_memory', arguments: { tier: n, content } }],
});

/** By a word of what was asked: what is written into memory, and what is said then. */
const SCRIPT: { word: string; first?: ModelScript; answer: string }[] = [
  {
    word: 'packing list',
    answer: `Here it is.\n\n\`\`\`json\n${JSON.stringify({ artifact_deltas: DELTAS })}\n\`\`\`\n`,
  },
  {
    word: 'road',
    answer: 'The road is open again since Monday. Gravel for the last kilometre, so drive slowly there.',
  },
  { word: 'still to be done', first: tier(2, PLANS), answer: NEXT_STEPS },
  {
    word: 'remind me',
    first: schedule('0 18 * * 4', 'Remind of the shopping: three people, no meat'),
    answer: 'Every Thursday at 18:00, then.',
  },
  {
    word: 'each evening',
    first: schedule('0 20 * * *', 'Which planets are up tonight?'),
    answer: 'At eight, with a cup of tea in hand.',
  },
  { word: 'count', first: tier(2, NIGHT), answer: COUNTING },
  { word: 'Milky Way', first: tier(3, MUSED), answer: 'Then we wait for midnight. It is worth the cold.' },
  {
    word: 'without sugar',
    first: { ...tier(1, LASTING), headerDelayMs: 700 },
    answer: 'Tea without sugar, and a thermos of it on the jetty. I shall remember.',
  },
  { word: 'from the jetty', answer: STARS },
  { word: 'story', answer: STORY },
];

function living(body: ChatBody): ModelScript | string {
  // Before it may stand words that were said to another persona.
  const asked = lastUserText(body).trim().split('\n').at(-1) ?? '';
  const part = SCRIPT.find(({ word }) => asked.includes(word));
  if (part === undefined) return `echo: ${asked}`;
  const isDone = body.messages.at(-1)?.role === 'tool';
  return part.first !== undefined && !isDone ? part.first : part.answer;
}

const PLAN = `# The weekend at the lake

- [x] Ask Ann and Ben
- [x] Book the hut
- [ ] Get the key of the boat shed
- [ ] Shop for three
- [ ] Learn five constellations
`;
const DAILY = `- Ann cannot eat meat; Ben brings the boat
- Asked for the stars over the lake
- The road behind the mill is open again
`;

export async function furnish(board: Board): Promise<void> {
  const { home, model } = board;
  model.reply(living);
  talkElsewhere(board);
  await board.say('/persona new Marlow');
  await board.say('/persona new Scout');
  await board.say('We go to the hut by the lake on Friday: Ann, Ben and I. What is still to be done?');
  await board.say('Good. Please remind me of the shopping.');
  const character = 'An astronomer who loves to explain, with dry humour, never in a hurry.';
  const made = await board.ask('POST', 'chats/board_main/personas', { name: 'Luna', character });
  expect(made.status, await made.text()).toBe(201);
  await eventually(async () => {
    const { active } = (await (await board.ask('GET', 'chats/board_main/personas')).json()) as {
      active: string;
    };
    return active === 'luna';
  }, 'Luna is there');
  await board.say('Good evening! How do I count the stars I see?');
  await board.say('And tell me each evening which planets are up.');
  await board.say('I have never seen the Milky Way.');
  await board.say('Which stars will we see from the jetty?');
  await board.say('Lovely. Remember that I drink my tea without sugar.');
  await board.say('marlow: And a short story for the fire?');
  await home.write(`groups/board_main/memory/${new Date().toISOString().slice(0, 10)}.md`, DAILY);
  await post(board, 'PUT', 'workspace/plan', { content: PLAN });
  await post(board, 'POST', 'tasks', { goal: 'Is the road behind the mill open?' });
  await post(board, 'POST', 'tasks', {
    goal: 'Write a packing list for three, and draw the path to the hut',
  });
  spend(board);
  await eventually(async () => {
    const { tasks } = (await (await fetch(`${board.url}/api/tasks`)).json()) as {
      tasks: { status: string }[];
    };
    return tasks.filter(({ status }) => status === 'completed').length === 2;
  }, 'the tasks are done');
}

async function post(board: Board, method: string, path: string, body: object): Promise<void> {
  const answer = await fetch(`${board.url}/api/${path}`, {
    method,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  expect(answer.ok, `${path}: ${answer.status}`).toBe(true);
}

function talkElsewhere({ home }: Board): void {
  seed(home, [
    {
      chat: 'discord_77',
      title: 'Garden',
      author: 'Ben',
      texts: ['The tomatoes are ripe', 'Who takes some home?'],
    },
    {
      chat: 'telegram_-1001',
      title: 'Star gazers',
      author: 'Ann',
      texts: ['Is anybody going out on Friday?', 'The forecast says clear skies', 'Then I bring the big one'],
    },
  ]);
}

/** Four weeks of usage, more of it at weekends. */
function spend({ home }: Board): void {
  const db = new Sqlite(join(home.folder, 'data/coterie.db'));
  db.pragma('busy_timeout = 10000');
  const add = db.prepare(`
    insert or ignore into usage (chat_id, persona_id, day, turns, input_tokens, output_tokens, cached_tokens, cost)
    values ('board_main', ?, ?, ?, ?, ?, ?, ?)`);
  const today = Math.floor(Date.now() / 86_400_000);
  for (let ago = 1; ago < 28; ago++) {
    for (const [persona, share] of Object.entries({ luna: 3, scout: 2, marlow: 1 })) {
      const turns = share * (1 + ((ago * 7) % 5)) * ((today - ago + 4) % 7 === 0 ? 2 : 1);
      const [input, output] = [turns * 2_100, turns * 160];
      add.run(persona, (today - ago) * 86_400_000, turns, input, output, input / 2, input + 4 * output);
    }
  }
  db.close();
}
