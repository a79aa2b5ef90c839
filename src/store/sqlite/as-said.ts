/** Our own messages, when people reply or react to them. Pure. */
import type { Appearance, Part } from '../../core/channel.js';

/**
 * What the persona said, of what a platform shows of it: without its name before it and the gateway's note below it,
 * which are not part of the text.
 */
export function asSaid(shown: string, { body, face }: { body: string; face: string | null }): string {
  const appearance: Appearance | null = face === null ? null : JSON.parse(face);
  const isNamed = appearance !== null && !appearance.alone && shown.startsWith(`${appearance.name}\n`);
  const text = isNamed ? shown.slice(appearance.name.length + 1) : shown;
  const part: Part = JSON.parse(body);
  if (part.note === undefined) return text;
  const said = part.text.slice(0, part.note).trimEnd();
  // Somebody may have quoted a part of it only.
  return text.length > said.length ? said : text;
}
