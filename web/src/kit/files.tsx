/** Files of a message: pictures to look at, others by name and size. */
import type { RowFile } from '../../../src/board/protocol.ts';
import { useTexts } from '../app.ts';
import { Icon } from './icons.tsx';
import { languageOfPage, sizeInWords } from './words.ts';

export function Files({ files }: { files: readonly RowFile[] }) {
  return (
    <ul class="files">
      {files.map((file, n) => (
        <li key={`${n} ${file.name}`}>
          <File file={file} />
        </li>
      ))}
    </ul>
  );
}

function File({ file: { name, type, bytes, address } }: { file: RowFile }) {
  const { kit } = useTexts();
  const size = bytes === null ? '' : sizeInWords(bytes, languageOfPage());
  if (address === null) {
    return (
      <span class="file soft">
        <Icon name="file" />
        {name} <small>{kit.notKept}</small>
      </span>
    );
  }
  if (type.startsWith('image/')) {
    return (
      <a href={address} target="_blank" rel="noopener noreferrer">
        <img class="picture" src={address} alt={name} loading="lazy" />
      </a>
    );
  }
  if (type.startsWith('audio/')) {
    return (
      <figure class="sound">
        {/* biome-ignore lint/a11y/useMediaCaption: nobody has written down what people send. */}
        <audio controls preload="none" src={address} aria-label={name} />
      </figure>
    );
  }
  return (
    <a class="file" href={address} download={name}>
      <Icon name="file" />
      {name} <small class="soft">{size}</small>
    </a>
  );
}
