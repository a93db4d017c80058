import ThicketProtocol
import ThicketTreeShape

/// Bugs of a server with trees, on the wire.
enum TreeFlaws {
    /// Divides a message with the changes of a batch behind its first change.
    static func divided(_ text: [UInt8]) -> [[UInt8]] {
        guard let message = try? ServerMessage(parsing: text), case .channel(_, .changes(let events)) = message,
            events.count > 1, text.contains("\"tx\":"), let start = text.firstIndex(of: UInt8(ascii: "[")),
            let list = (try? JSONValue(parsing: Array(text[start...])))?.arrayValue
        else { return [text] }
        let head = text[..<start]
        return [list.prefix(1), list.dropFirst()].map { head + JSONValue.array(Array($0)).serialized() }
    }

    /// A request as it is decided.
    static func received(_ bytes: [UInt8], _ mutation: Mutation) -> [UInt8] {
        guard mutation.mutant == .batchInParts, mutation.strikes(oneIn: 3),
            let end = bytes.place(behind: "\r\n\r\n"), let batch = try? TreeBatch(parsing: Array(bytes[end...])),
            batch.operations.count > 1
        else { return bytes }
        // Only the first operations reach the log; the rest was to be a second group.
        let half = TreeBatch(id: batch.id, Array(batch.operations.prefix(batch.operations.count / 2)))
        let body = JSONValue.object(half.object).serialized()
        let head = String(decoding: bytes[..<end], as: UTF8.self)
            .replacing("content-length: \(bytes.count - end)", with: "content-length: \(body.count)")
        return Array(head.utf8) + body
    }
}
