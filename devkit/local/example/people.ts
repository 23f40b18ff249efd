import type { Random } from './random.ts'

/** Given names and surnames of one script, and how an e-mail address spells them. All invented. */
type Script = { given: readonly string[]; family: readonly string[] }

const SCRIPTS: readonly Script[] = [
  {
    given: ['Asha', 'Ravi', 'Meera', 'Imran', 'Lalitha', 'Joseph', 'Sunita', 'Karthik', 'Fatima', 'Devendra'],
    family: ['Rao', 'Iyer', 'Khan', 'Patil', 'D’Souza', 'Mehta', 'Nair', 'Chaudhary', 'Bose', 'Gill'],
  },
  { given: ['आशा', 'रवि', 'सुनीता', 'महेश', 'पूजा'], family: ['शर्मा', 'वर्मा', 'पाटील', 'यादव', 'जोशी'] },
  { given: ['கவிதா', 'முருகன்', 'செல்வி', 'அருண்'], family: ['ராமன்', 'சுந்தரம்', 'பாண்டியன்', 'குமார்'] },
  { given: ['রিনা', 'সুমন', 'অনিতা', 'তাপস'], family: ['ঘোষ', 'দাস', 'মুখার্জী', 'সেন'] },
  { given: ['ਹਰਪ੍ਰੀਤ', 'ਗੁਰਮੀਤ', 'ਸਿਮਰਨ', 'ਜਸਵੰਤ'], family: ['ਕੌਰ', 'ਸਿੰਘ', 'ਗਿੱਲ', 'ਸੰਧੂ'] },
  { given: ['లక్ష్మి', 'వెంకట్', 'పద్మ'], family: ['రెడ్డి', 'నాయుడు', 'శాస్త్రి'] },
  { given: ['ಸುಮಾ', 'ಮಂಜುನಾಥ', 'ಲತಾ'], family: ['ಗೌಡ', 'ಹೆಗ್ಡೆ', 'ಶೆಟ್ಟಿ'] },
  { given: ['അനിത', 'രാജേഷ്', 'ബിന്ദു'], family: ['നായർ', 'മേനോൻ', 'വർഗീസ്'] },
  { given: ['મીના', 'જિગ્નેશ', 'હેતલ'], family: ['પટેલ', 'શાહ', 'દેસાઈ'] },
  { given: ['ସୀତା', 'ପ୍ରକାଶ'], family: ['ଦାସ', 'ମହାନ୍ତି'] },
  { given: ['فاطمہ', 'سلیم'], family: ['خان', 'انصاری'] },
]

/** Half of the people write their names in Latin letters, the others in any script. */
export function personName(random: Random): string {
  const script = random.below(2) === 0 ? (SCRIPTS[0] as Script) : random.of(SCRIPTS)
  return `${random.of(script.given)} ${random.of(script.family)}`
}
