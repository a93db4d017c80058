import ThicketCommandLine
import ThicketCrypto
import ThicketOnions

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// A note from standard input: the first line is its title, the rest its text. An empty line between them is left out.
/// A note is never read from a file that an editor has written: its text must not be on a disk in clear.
enum NoteInput {
    /// Most bytes of the input; the longest note in the widest characters has fewer.
    static let bytesMax = 1 << 16

    static func read(_ call: Call) throws(Failure) -> NoteText {
        if Terminal.isTerminal(STDIN_FILENO) {
            Terminal.writeError(
                "The first line is the title, the rest the text; Ctrl-D at the beginning of a line ends it.\n")
        }
        switch Files.read(STDIN_FILENO, bytesMax: bytesMax) {
        case .absent: throw Failure("there is no standard input", .usage)
        case .failed(let reason): throw Failure("standard input cannot be read: \(reason)", .usage)
        case .bytes(var bytes):
            defer { wipe(&bytes) }
            let text = parts(bytes)
            // A failed command before the pipe produces no input, and empty input must not replace a note.
            guard text.title.count > 0 || text.info.count > 0 else {
                throw Failure("nothing was saved: nothing came in. 'thicket onions rm' removes a note.", .usage)
            }
            guard text.title.isUTF8, text.info.isUTF8 else { throw Failure("the note is not UTF-8 text", .usage) }
            for field in NoteField.allCases where text[field].utf16Count > field.unitsMax {
                throw Failure(
                    "nothing was saved: \(OnionError.tooLong(field, units: text[field].utf16Count))", .refused)
            }
            return text
        }
    }

    static func parts(_ bytes: [UInt8]) -> NoteText {
        let bytes = ByteOrderMark.removed(from: bytes)
        let end: Int = bytes.firstIndex(of: 0x0A) ?? bytes.endIndex
        var title = bytes[..<end]
        if title.last == 0x0D { title.removeLast() }
        var info = bytes[min(end + 1, bytes.endIndex)...]
        if info.starts(with: [0x0D, 0x0A]) { info.removeFirst() }
        if info.first == 0x0A { info.removeFirst() }
        // A line end that the terminal or an editor adds is not part of the note.
        if info.last == 0x0A {
            info.removeLast()
            if info.last == 0x0D { info.removeLast() }
        }
        return NoteText(title: secret(title), info: secret(info))
    }

    private static func secret(_ bytes: ArraySlice<UInt8>) -> SecureBytes {
        bytes.withUnsafeBytes { SecureBytes(copying: $0) }
    }

    private static func wipe(_ bytes: inout [UInt8]) {
        for place in bytes.indices { bytes[place] = 0 }
    }
}
