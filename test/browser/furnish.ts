/** A gateway that somebody has lived with for a while, so that no place of the page is empty. */
import { expect } from 'vitest';
import { type ChatBody, lastUserText } from '../fakes/model.js';
import { eventually } from '../harness/gateway.js';
import { type Board, remembering, seed } from './board.js';

const CODE = `Here is a way to count the stars that are up:

\`\`\`python
def visible(stars, limit=6.5):
    """Those bright enough for the eye."""
    return [star for star in stars if star.magnitude <= limit]
\`\`\`

| Star | Magnitude | Distance |
|---|--:|--:|
| Sirius | −1.46 | 8.6 ly |
| Vega | 0.03 | 25 ly |
| Polaris | 1.98 | 433 ly |

Dark skies help **more** than any telescope.`;
const DELTAS = [
  {
    id: 'sky.md',
    title: 'The sky in March',
    content: '# The sky in March\n\n- Sirius stands in the south\n- Leo rises\n',
  },
  {
    id: 'chart.svg',
    title: 'Chart',
    type: 'image/svg+xml',
    content: `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 120 80"><rect width="120" height="80" fill="#123"/><circle cx="30" cy="30" r="2" fill="#fff"/><circle cx="80" cy="50" r="1" fill="#fff"/></svg>`,
  },
];

/** Of an astronomer. */
export function living(body: ChatBody) {
  const asked = lastUserText(body);
  if (asked.includes('a chart')) {
    return `Here it is.\n\n\`\`\`json\n${JSON.stringify({ artifact_deltas: DELTAS })}\n\`\`\`\n`;
  }
  if (asked.includes('stars')) return CODE;
  return remembering(body);
}

const PLAN = `# A night under the stars

- [x] Find a dark place
- [x] Borrow the telescope
- [ ] Learn five constellations
- [ ] Bake something to take along
`;

export async function furnish(board: Board): Promise<void> {
  const { home, model } = board;
  model.reply(living);
  const character = 'An astronomer who loves to explain, with dry humour, never in a hurry.';
  const made = await board.ask('POST', 'chats/board_main/personas', { name: 'Luna', character });
  expect(made.status, await made.text()).toBe(201);
  await eventually(async () => {
    const { active } = (await (await board.ask('GET', 'chats/board_main/personas')).json()) as {
      active: string;
    };
    return active === 'luna';
  }, 'Luna is there');
  await board.say('Good evening! Which stars will I see tonight, and how do I count them?');
  await board.say('remember that I drink tea without sugar');
  await board.say('/schedule 0 20 * * * Tell me which planets are up');
  const today = new Date().toISOString().slice(0, 10);
  await home.write(
    `groups/board_main/memory/${today}.md`,
    `# ${today}\n\n- asked for the stars of tonight\n`,
  );
  await fetch(`${board.url}/api/workspace/plan`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ content: PLAN }),
  });
  await fetch(`${board.url}/api/tasks`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ goal: 'Draw me a chart of the sky in March, with a page of notes' }),
  });
  seed(home, [
    {
      chat: 'telegram_-1001',
      title: 'Star gazers',
      author: 'Ann',
      texts: [
        'Is anybody going out on Friday?',
        'The forecast says clear skies',
        'Then I bring the **big** one',
      ],
    },
    { chat: 'discord_77', title: 'Garden', author: 'Ben', texts: ['The tomatoes are ripe'] },
  ]);
  await eventually(async () => {
    const { tasks } = (await (await fetch(`${board.url}/api/tasks`)).json()) as {
      tasks: { status: string }[];
    };
    return tasks.some(({ status }) => status === 'completed');
  }, 'the task is done');
}
