package import ThicketProtocol

/// Encodes the client's messages (wire contract, sections 3 to 6).
package enum Messages {
    package static func onChannel(_ number: Int, _ text: String, _ more: [UInt8] = []) -> [UInt8] {
        var bytes = [UInt8]()
        bytes.reserveCapacity(8 + text.utf8.count + more.count)
        bytes.append(contentsOf: String(number).utf8)
        bytes.append(0x3A)
        bytes.append(contentsOf: text.utf8)
        bytes.append(contentsOf: more)
        return bytes
    }

    package static func heartbeat(_ count: Int64) -> [UInt8] { Array("h:\(count)".utf8) }

    /// A page of the index with data. Clients put the mark into the second field (wire contract, section 5).
    package static func index(mark: String?, limit: Int) -> String { "i:1:\(mark ?? "")::\(limit)" }

    /// - Parameter mode: the mode that a new bucket gets; nil: an open one.
    package static func initialize(
        _ number: Int, _ bucket: BucketName, _ clientID: ClientID, _ options: SyncOptions, command: String?,
        mode: String? = nil
    ) -> [UInt8] {
        var body: JSONObject = [
            "clientid": .string(clientID.text), "api": "1.1", "token": .string(options.token),
            "app_id": .string(options.app.text), "name": .string(bucket.text), "library": .string(options.library),
            "version": .string(options.version),
        ]
        if let device = options.deviceID { body["device_id"] = .string(device) }
        if let mode { body["mode"] = .string(mode) }
        if let command { body["cmd"] = .string(command) }
        return onChannel(number, "init:", body.serialized())
    }

    /// One change. Its bytes are stored and resent unchanged.
    ///
    /// - Parameter isWhole: the diff comes from replacing whole objects. Sent only for a diff with a source version.
    static func change(
        key: EntityKey, changeID: ChangeID, edit: Edit, source: Version?, whole: JSONObject?, isWhole: Bool = false
    ) -> [UInt8] {
        var writer = JSONWriter(reservingBytes: 256)
        writer.raw("{\"id\":")
        writer.write(string: key.text)
        writer.raw(",\"ccid\":")
        writer.write(string: changeID.text)
        if let source {
            writer.raw(",\"sv\":")
            writer.write(source)
        }
        switch edit {
        case .remove: writer.raw(",\"o\":\"-\"")
        case .modify(let diff):
            writer.raw(",\"o\":\"M\",\"v\":")
            diff.write(to: &writer)
            if let whole {
                writer.raw(",\"d\":")
                writer.write(whole)
            }
            if isWhole, source != nil { writer.raw(wholeMark) }
        }
        writer.raw(byte: 0x7D)
        return writer.bytes
    }

    private static let wholeMark: StaticString = ",\"whole\":true"
    private static let wholeEnd: [UInt8] = Array(",\"whole\":true}".utf8)

    /// Whether a change encoded above has `whole`. It is the last member, after an object's closing bracket, so the
    /// suffix decides.
    static func isWhole(_ change: [UInt8]) -> Bool { change.suffix(wholeEnd.count).elementsEqual(wholeEnd) }

    /// Whether a change encoded above carries the whole object (`d`); also true when the bytes cannot be parsed, to be
    /// safe.
    static func hasWhole(_ change: [UInt8]) -> Bool {
        guard let root = try? JSONDocument(parsing: change).root else { return true }
        return root["d"] != nil
    }

    /// The answer to the server's `index` request.
    static func state(_ number: Int, _ report: JSONObject) -> [UInt8] {
        onChannel(number, "index:", report.serialized())
    }

    static func log(_ text: String) -> [UInt8] {
        let body: JSONObject = ["log": .string(text)]
        return Array("log:".utf8) + body.serialized()
    }
}
