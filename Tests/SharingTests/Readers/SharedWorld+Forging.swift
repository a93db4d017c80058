import ThicketCrypto
import ThicketProtocol
import ThicketSealed

@testable import ThicketSharing

/// What members can do who do not keep to what honest devices do.
extension SharedWorld {
    /// An operation as a member makes it who does not keep to what honest devices do: it types one character at the beginning.
    ///
    /// - Parameters:
    ///   - list: that it names; its author signs, and is listed there.
    ///   - secrets: that it seals with.
    ///   - id: of the change, 16 bytes; nil: a new one.
    ///   - content: in place of the character.
    ///   - raw: in place of the whole operation.
    func written(
        by user: String, under list: ReaderList, with secrets: BucketSecrets, letter: UInt16, id: [UInt8]? = nil,
        content: SealedOperation.Content? = nil, raw: SealedOperation? = nil
    ) throws -> [UInt8] {
        let member: Member = try circle.member(user)
        let device: [UInt8] = .init(repeating: 7, count: 8)
        let log: SealedLog = devices[0].object.object.log
        guard let head: Head = log.chain[log.position], let place: Int = list.place(of: user) else {
            throw Failure(description: "no place")
        }
        let length: Int = log.object?["t"]?.stringValue?.utf16.count ?? 0
        let typing: Edit = try .init(
            .object(ObjectDiff([(key: "t", operation: .text(TextDelta([.insert([letter]), .retain(length)])))])))
        let operation: SealedOperation =
            raw
            ?? SealedOperation(
                base: log.position, head: head, incarnation: log.incarnationTag,
                author: Authorship.authorID(keyID: member.keys.id, device: device), list: Int(list.version),
                content: content ?? .edit(typing))
        return try signed(
            operation.clearBytes(), .operation, position: 0, id: id ?? RandomBytes.make(16), by: member, list, place,
            device, secrets)
    }

    /// What would stop every device, or make it blame the server, if it counted: operations of newer rules, on a position to come, and
    /// on a head that was never there. All else of it is honest: the author signs, under the list that it names.
    func hostile(by user: String, under list: ReaderList, with secrets: BucketSecrets) throws -> [[UInt8]] {
        let member: Member = try circle.member(user)
        let device: [UInt8] = .init(repeating: 7, count: 8)
        let log: SealedLog = devices[0].object.object.log
        guard let head: Head = log.chain[log.position], let never: Head = .init(RandomBytes.make(16)),
            let place: Int = list.place(of: user)
        else { throw Failure(description: "no place") }
        func text(_ base: Int, _ head: Head) -> [UInt8] {
            SealedOperation(
                base: base, head: head, incarnation: log.incarnationTag,
                author: Authorship.authorID(keyID: member.keys.id, device: device), list: Int(list.version),
                content: .tombstone
            ).clearBytes()
        }
        let newerRules: [UInt8] = Array(#"{"t":2,"l":\#(list.version),"x":{}}"#.utf8)
        return try [newerRules, text(log.position + 9, head), text(log.position, never)].map { clear in
            try signed(
                clear, .operation, position: 0, id: RandomBytes.make(16), by: member, list, place, device, secrets)
        }
    }

    /// A snapshot that a member has made up: what the first device's log holds, changed.
    func inventedSnapshot(
        by user: String, under list: ReaderList, with secrets: BucketSecrets,
        changing change: (inout JSONObject) -> Void = { _ in }
    ) throws -> [UInt8] {
        let member: Member = try circle.member(user)
        guard let place: Int = list.place(of: user) else { throw Failure(description: "no place") }
        let log: SealedLog = devices[0].object.object.log
        guard var said: JSONObject = try JSONValue(parsing: SealedSnapshot.clearBytes(of: log)).objectValue else {
            throw Failure(description: "no snapshot")
        }
        change(&said)
        return try signed(
            JSONValue.object(said).serialized(), .snapshot, position: log.position, id: RandomBytes.make(16),
            by: member, list, place, .init(repeating: 7, count: 8), secrets)
    }

    /// The object made anew by a member: another incarnation.
    func recreated(
        by user: String, under list: ReaderList, with secrets: BucketSecrets, named name: String = appKey
    ) throws -> [UInt8] {
        let member: Member = try circle.member(user)
        guard let place: Int = list.place(of: user) else { throw Failure(description: "no place") }
        let log: SealedLog = .init(
            place: devices[0].object.object.log.place, appKey: name, incarnation: RandomBytes.make(16),
            object: ["t": "anew"], list: Int(list.version))
        return try signed(
            SealedSnapshot.clearBytes(of: log), .snapshot, position: 0, id: RandomBytes.make(16), by: member, list,
            place, .init(repeating: 7, count: 8), secrets)
    }

    private func signed(
        _ text: [UInt8], _ kind: SealedHeader.Kind, position: Int, id: [UInt8], by member: Member, _ list: ReaderList,
        _ place: Int, _ device: [UInt8], _ secrets: BucketSecrets
    ) throws -> [UInt8] {
        let keys: SealedBucketKeys = try secrets.keys()
        let said: Authorship.Statement = .init(
            place: keys.place(serverKey: serverKey), kind: kind, position: position, id: id, clear: text)
        let signature: [UInt8] = try member.account.identity.signature(
            for: .author, said.fields(list, list.readers[place], device))
        let authorship: Authorship = .init(
            list: list.version, digest: list.digest, place: place, device: device, signature: signature)
        return try keys.sealer(serverKey: serverKey).seal(
            authorship.bytes + text, kind: kind, id: id, position: position, nonce: RandomBytes.make(12))
    }
}
