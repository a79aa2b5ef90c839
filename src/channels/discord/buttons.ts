/** Choices as Discord's buttons below a message. Pure. */
import type { Choice } from '../../core/channel.js';
import { buttonLabel } from '../kit/outgoing.js';

const ROW = 1;
const BUTTON = 2;
/** Grey: none of the choices is recommended. */
const SECONDARY = 2;
const MOST_LABEL = 80;
const MOST_IN_A_ROW = 5;
const MOST = 25;

export interface ActionRow {
  type: typeof ROW;
  components: { type: typeof BUTTON; style: number; label: string; custom_id: string }[];
}

export function componentsOf(choices: readonly Choice[]): ActionRow[] {
  const buttons = choices.slice(0, MOST).map((choice) => ({
    type: BUTTON as typeof BUTTON,
    style: SECONDARY,
    label: buttonLabel(choice.label, MOST_LABEL),
    custom_id: choice.value,
  }));
  const rows: ActionRow[] = [];
  for (let from = 0; from < buttons.length; from += MOST_IN_A_ROW) {
    rows.push({ type: ROW, components: buttons.slice(from, from + MOST_IN_A_ROW) });
  }
  return rows;
}
