/** Choices as Telegram's buttons below a message. Pure. */
import type { Choice } from '../../core/channel.js';
import { buttonLabel } from '../kit/outgoing.js';

/** Longer ones are cut by the app, without a sign of it. */
const MOST_LABEL = 60;
const MOST = 100;
const ROW = { most: 3, characters: 24 };

/** The payload of a message's buttons. */
export interface Keyboard {
  inline_keyboard: { text: string; callback_data: string }[][];
}

export function keyboardOf(choices: readonly Choice[]): Keyboard {
  const shown = choices
    .slice(0, MOST)
    .map((choice) => ({ ...choice, label: buttonLabel(choice.label, MOST_LABEL) }));
  return {
    inline_keyboard: rows(shown, ROW).map((row) =>
      row.map((button) => ({ text: button.label, callback_data: button.value })),
    ),
  };
}

/** Short ones stand beside each other, as far as a row has room for them. */
function rows<Each extends { label: string }>(
  buttons: readonly Each[],
  { most, characters: wide }: { most: number; characters: number },
): Each[][] {
  const all: Each[][] = [];
  for (const button of buttons) {
    const row = all.at(-1) ?? [];
    const width = [...row, button].reduce((sum, each) => sum + each.label.length, 0);
    if (row.length > 0 && row.length < most && width <= wide) row.push(button);
    else all.push([button]);
  }
  return all;
}
