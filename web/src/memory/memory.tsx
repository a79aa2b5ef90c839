import { useTexts } from '../app.ts';

export default function Memory() {
  return <h1>{useTexts().frame.memory}</h1>;
}
