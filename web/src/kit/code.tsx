/** A block of code, coloured once it is complete, with a button that copies it. */
import { useEffect, useState } from 'preact/hooks';
import { useTexts } from '../app.ts';
import { copied } from './copy.ts';
import type { Piece } from './highlight.ts';

/** Longer code stays plain. */
const MOST_CHARS = 50_000;
const SAID_MS = 2_000;

export function CodeBlock({
  code,
  language,
  isOpen = false,
}: {
  code: string;
  language: string;
  /** More of it will come. */
  isOpen?: boolean;
}) {
  const { kit } = useTexts();
  const [coloured, setColoured] = useState<{ of: string; pieces: Piece[] } | null>(null);
  const [hasCopied, setCopied] = useState(false);
  useEffect(() => {
    if (isOpen || language === '' || code.length > MOST_CHARS) return;
    let isOver = false;
    import('./highlight.ts')
      .then(({ highlighted }) => isOver || setColoured({ of: code, pieces: highlighted(code, language) }))
      // Without its colours, code is still there.
      .catch(() => setColoured(null));
    return () => {
      isOver = true;
    };
  }, [code, language, isOpen]);

  async function copy(): Promise<void> {
    if (!(await copied(code))) return;
    setCopied(true);
    setTimeout(() => setCopied(false), SAID_MS);
  }

  return (
    <figure class="code">
      <figcaption>
        <span class="grow">{language}</span>
        <span role="status">{hasCopied ? kit.copied : ''}</span>
        <button type="button" class="quiet copy" onClick={copy}>
          {kit.copyCode}
        </button>
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also for those without a mouse. */}
      <pre tabIndex={0}>
        <code>{coloured?.of === code ? coloured.pieces.map(shown) : code}</code>
      </pre>
    </figure>
  );
}

function shown(piece: Piece): string | preact.JSX.Element {
  return typeof piece === 'string' ? piece : <span class={piece.kind}>{piece.inside.map(shown)}</span>;
}
