/** Step 6 of the route: the buttons below an answer, which show other versions of it (docs/decisions/0066). */
import type { Offer } from '../../core/access.js';
import type { Anew } from '../../core/anew.js';
import type { NewDelivery } from '../../core/channel.js';

import { withButtons } from '../deliver/reply.js';
import type { RoomServices, Turn } from './turn.js';

const WEEK_MS = 7 * 86_400_000;

/** Buttons below the answer, if it has versions; null where there are none. */
export async function versionOffer(
  services: RoomServices,
  { room, channel, turn }: Turn,
): Promise<Offer | null> {
  const { clock, newId, settings } = services;
  const { versionButtons: when } = settings;
  const { anew } = turn;
  if (!channel.buttons || when === 'off' || (when === 'used' && !anew)) return null;
  const numbers = anew ? await numbersAfter(services, room, anew) : { all: [1], shown: 1 };
  if (when === 'used' && numbers.all.length < 2) return null;
  const at = numbers.all.indexOf(numbers.shown);
  const back = numbers.all.at(at - 1) ?? numbers.shown;
  const next = numbers.all[at + 1];
  const option = (label: string, argument: string) => ({ label, command: { name: 'again', argument } });
  const step = [option('◀', String(back)), option('▶', next === undefined ? '' : String(next))];
  const options = [...(numbers.all.length > 1 ? step : []), option('🔁', '')];
  return { key: newId(), room, senderId: null, options, until: clock.now() + WEEK_MS };
}

async function numbersAfter(
  { store }: RoomServices,
  room: string,
  { how, version }: Anew,
): Promise<{ all: number[]; shown: number }> {
  const answer = await store.newestAnswer(room);
  const all = (answer?.versions ?? []).map(({ number }) => number);
  const last = all.at(-1) ?? 0;
  if (how === 'more') return { all, shown: answer?.shown.number ?? last };
  return version === null ? { all: [...all, last + 1], shown: last + 1 } : { all, shown: version };
}

/** Its deliveries. If it has no answer, the one before stays shown, and the sentence is a message of its own. */
export function deliveriesAnew(
  { channel, turn }: Turn,
  deliveries: NewDelivery[],
  isAnswered: boolean,
  offer: Offer | null,
): NewDelivery[] {
  if (isAnswered) return offer ? withButtons(channel, deliveries, offer) : deliveries;
  return turn.anew ? deliveries.map((each) => ({ ...each, origin: `notice:${turn.id}` })) : deliveries;
}
