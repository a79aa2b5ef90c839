/**
 * Step 5, to the server: the body of a request. Pictures become base64 only while they are sent, piece by piece: ten of
 * them as text would take several times their size in memory.
 */
import { randomUUID } from 'node:crypto';
import type { ModelImage } from '../core/model.js';

export interface Body {
  /** JSON, with a slot wherever the next of the pictures comes. */
  text: string;
  slot: string;
  pictures: readonly Buffer[];
}

/** What stands for pictures while a request is written. Nobody can know it, so no message can hold it. */
export function createSlot(): string {
  return `picture-${randomUUID()}`;
}

export function pictureUrl({ mimeType }: ModelImage, slot: string): string {
  return `data:${mimeType};base64,${slot}`;
}

/** What is said instead, where a model cannot be shown any. */
export function withoutPictures(content: string, images: ModelImage[]): string {
  const pictures = images.length === 1 ? '1 picture' : `${images.length} pictures`;
  return `${content}\n[${pictures} could not be shown to this model]`.trimStart();
}

export function byteLengthOf({ text, slot, pictures }: Body): number {
  const base64 = pictures.reduce((sum, { length }) => sum + 4 * Math.ceil(length / 3) - slot.length, 0);
  return Buffer.byteLength(text) + base64;
}

/** Three bytes are four letters, so that pieces of this size can be joined. */
const PIECE_BYTES = 3 * 16_384;

export function* piecesOf({ text, slot, pictures }: Body): Generator<string> {
  for (const [n, part] of text.split(slot).entries()) {
    const picture = n === 0 ? undefined : pictures[n - 1];
    for (let at = 0; picture !== undefined && at < picture.length; at += PIECE_BYTES) {
      yield picture.toString('base64', at, Math.min(at + PIECE_BYTES, picture.length));
    }
    yield part;
  }
}
