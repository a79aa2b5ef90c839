/** The face of a persona: its picture, or the beginning of its name on a colour of its own. */
import { useState } from 'preact/hooks';

export function Face({ name, avatar }: { name: string; avatar: string | null }) {
  const [broken, setBroken] = useState<string | null>(null);
  if (avatar !== null && avatar !== broken)
    return (
      <img
        class="face"
        src={avatar}
        alt=""
        loading="lazy"
        decoding="async"
        onError={() => setBroken(avatar)}
      />
    );
  const hue = [...name].reduce((sum, char) => (sum * 31 + (char.codePointAt(0) ?? 0)) % 360, 7);
  return (
    <span class="face" aria-hidden="true" style={{ '--hue': `${hue}` }}>
      {firstOf(name)}
    </span>
  );
}

/** One character as people count them: an emoji of several code points stays whole. */
function firstOf(name: string): string {
  const [first] = new Intl.Segmenter().segment(name.trim());
  return first?.segment.toLocaleUpperCase() ?? '·';
}
