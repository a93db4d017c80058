/// Finds `id` and `ccid` in a change whose JSON does not parse, so that the server can report to its author which
/// change it was; otherwise the author would wait for it for ever.
enum LenientChangeParser {
    static func request(from json: ArraySlice<UInt8>, error: JSONError) -> ChangeRequest {
        var walker = Walker(bytes: json, at: json.startIndex)
        let found = walker.run()
        return ChangeRequest(
            key: found.key, ccid: found.ccid, operation: .other(""), problems: [error.description])
    }

    /// Reads the members of the outermost object up to the first one that cannot be read.
    private struct Walker {
        let bytes: ArraySlice<UInt8>
        var at: Int

        private var byte: UInt8? { at < bytes.endIndex ? bytes[at] : nil }

        mutating func run() -> (key: String, ccid: String) {
            var key = ""
            var ccid = ""
            skipSpace()
            guard consume(UInt8(ascii: "{")) else { return (key, ccid) }
            while true {
                skipSpace()
                guard let name = readString() else { break }
                skipSpace()
                guard consume(UInt8(ascii: ":")) else { break }
                skipSpace()
                if byte == UInt8(ascii: "\"") {
                    guard let text = readString() else { break }
                    // Each string is checked by itself: only valid ones are sent back.
                    if WireText.equals(name, "\"id\""), let value = decode(text) { key = value }
                    if WireText.equals(name, "\"ccid\""), let value = decode(text) { ccid = value }
                } else {
                    skipValue()
                }
                skipSpace()
                guard consume(UInt8(ascii: ",")) else { break }
            }
            return (key, ccid)
        }

        private func decode(_ text: ArraySlice<UInt8>) -> String? { try? JSONDocument(parsing: text).root.string }

        private mutating func skipSpace() {
            while let byte, byte <= 0x20 { at += 1 }
        }

        private mutating func consume(_ wanted: UInt8) -> Bool {
            guard byte == wanted else { return false }
            at += 1
            return true
        }

        /// A string with its quotes; nil when it is missing or does not end.
        private mutating func readString() -> ArraySlice<UInt8>? {
            let start = at
            guard consume(UInt8(ascii: "\"")) else { return nil }
            while let byte {
                at += 1
                if byte == UInt8(ascii: "\"") { return bytes[start..<at] }
                if byte == UInt8(ascii: "\\") { at += 1 }
            }
            return nil
        }

        /// Skips everything up to the comma or bracket that ends this member.
        private mutating func skipValue() {
            var depth = 0
            while let byte {
                switch byte {
                case UInt8(ascii: "\""):
                    guard readString() != nil else { return }
                    continue
                case UInt8(ascii: "{"), UInt8(ascii: "["):
                    depth += 1
                case UInt8(ascii: "}"), UInt8(ascii: "]"):
                    if depth == 0 { return }
                    depth -= 1
                case UInt8(ascii: ",") where depth == 0:
                    return
                default:
                    break
                }
                at += 1
            }
        }
    }
}
