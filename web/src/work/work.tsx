import { useTexts } from '../app.ts';

export default function Work() {
  return <h1>{useTexts().frame.work}</h1>;
}
