import ThicketProtocol

/// Writes one applied change as an element of a `c:[…]` message (wire contract, 6.2).
///
/// The same bytes go to every receiver, live or catching up, the author included.
public enum ChangeElement {
    /// - Parameters:
    ///   - change: a row of the log.
    ///   - changeVersion: hex digits of its cv (`ChangeVersionCodec`).
    public static func encode(_ change: ChangeRecord, changeVersion: [UInt8]) -> [UInt8] {
        let length: Int = 160 + change.clientID.text.utf8.count + change.key.text.utf8.count + change.diff.count
        var writer = JSONWriter(reservingBytes: length)
        writer.raw("{\"clientid\":")
        writer.write(string: change.clientID.text)
        writer.raw(",\"cv\":\"")
        writer.raw(changeVersion)
        writer.raw("\",\"id\":")
        writer.write(string: change.key.text)
        switch change.kind {
        case .remove:
            writer.raw(",\"o\":\"-\"")
        case .modify:
            writer.raw(",\"o\":\"M\",\"v\":")
            writer.raw(change.diff)
            if let source: Version = change.sourceVersion {
                writer.raw(",\"sv\":")
                writer.write(source)
            }
        }
        writer.raw(",\"ev\":")
        writer.write(change.endVersion)
        writer.raw(",\"ccids\":[")
        writer.write(string: change.changeID.text)
        writer.raw("]}")
        return writer.bytes
    }
}
