/// Text from other users or machines, made safe for a terminal.
public enum Screen {
    /// Replaces characters that control a terminal, change the direction of text or are invisible by `\\u{…}`:
    /// control characters (C0 except tab and line feed, DEL, C1), direction marks, zero-width characters, line and
    /// paragraph separators, tags. Joiners of emoji and of scripts stay.
    public static func safe(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: isUnsafe) else { return text }
        var result = ""
        for scalar in text.unicodeScalars {
            if isUnsafe(scalar) {
                result += "\\u{" + String(scalar.value, radix: 16) + "}"
            } else {
                result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    private static func isUnsafe(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x09, 0x0A: false
        case 0x00..<0x20, 0x7F..<0xA0: true
        case 0x061C, 0x200B, 0x200E, 0x200F, 0x2028...0x202E, 0x2060...0x206F, 0xFEFF, 0xFFF9...0xFFFB: true
        // Tags, which can hide text; those after a black flag, which form flags of regions, can hide as much.
        case 0xE0000...0xE007F: true
        default: false
        }
    }
}
