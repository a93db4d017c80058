import ThicketCrypto
import ThicketProtocol
import ThicketSealed

@testable import ThicketSharing

/// What dishonest members can do.
extension SharedWorld {
    /// An operation of a dishonest member: it types one character at the beginning.
    ///
    /// - Parameters:
    ///   - list: the list that it names; its author signs and is in that list.
    ///   - secrets: the secrets with which it is sealed.
    ///   - id: of the change, 16 bytes; nil: a new one.
    ///   - content: in place of the character.
    ///   - raw: in place of the whole operation.
    func written(
        by user: String, under list: ReaderList, with secrets: BucketSecrets, letter: UInt16, id: [UInt8]? = nil,
        content: SealedOperation.Content? = nil, raw: SealedOperation? = nil
    ) throws -> [UInt8] {
        let member = try circle.member(user)
        let device = [UInt8](repeating: 7, count: 8)
        let log = devices[0].object.object.log
        guard let head = log.chain[log.position], let place = list.place(of: user) else {
            throw Failure(description: "no place")
        }
        let length = log.object?["t"]?.stringValue?.utf16.count ?? 0
        let typing = try Edit(
            .object(ObjectDiff([(key: "t", operation: .text(TextDelta([.insert([letter]), .retain(length)])))])))
        let operation =
            raw
            ?? SealedOperation(
                base: log.position, head: head, incarnation: log.incarnationTag,
                author: Authorship.authorID(keyID: member.keys.id, device: device), list: Int(list.version),
                content: content ?? .edit(typing))
        return try signed(
            operation.clearBytes(), .operation, position: 0, id: id ?? RandomBytes.make(16), by: member, list, place,
            device, secrets)
    }

    /// Operations that would stop every device, or make it blame the server, if they counted: one of newer rules, one
    /// on a future position, and one on a head that never existed. The rest is honest: the author signs, under the list
    /// that the operation names.
    func hostile(by user: String, under list: ReaderList, with secrets: BucketSecrets) throws -> [[UInt8]] {
        let member = try circle.member(user)
        let device = [UInt8](repeating: 7, count: 8)
        let log = devices[0].object.object.log
        guard let head = log.chain[log.position], let never = Head(RandomBytes.make(16)),
            let place = list.place(of: user)
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

    /// A snapshot that a member has made up: the log of the first device, changed.
    func inventedSnapshot(
        by user: String, under list: ReaderList, with secrets: BucketSecrets,
        changing change: (inout JSONObject) -> Void = { _ in }
    ) throws -> [UInt8] {
        let member = try circle.member(user)
        guard let place = list.place(of: user) else { throw Failure(description: "no place") }
        let log = devices[0].object.object.log
        guard var said = try JSONValue(parsing: SealedSnapshot.clearBytes(of: log)).objectValue else {
            throw Failure(description: "no snapshot")
        }
        change(&said)
        return try signed(
            JSONValue.object(said).serialized(), .snapshot, position: log.position, id: RandomBytes.make(16),
            by: member, list, place, .init(repeating: 7, count: 8), secrets)
    }

    /// The object recreated by a member, as another incarnation.
    func recreated(
        by user: String, under list: ReaderList, with secrets: BucketSecrets, named name: String = appKey
    ) throws -> [UInt8] {
        let member = try circle.member(user)
        guard let place = list.place(of: user) else { throw Failure(description: "no place") }
        let log = SealedLog(
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
        let keys = try secrets.keys()
        let said = Authorship.Statement(
            place: keys.place(serverKey: serverKey), kind: kind, position: position, id: id, clear: text)
        let signature = try member.account.identity.signature(
            for: .author, said.fields(list, list.readers[place], device))
        let authorship = Authorship(
            list: list.version, digest: list.digest, place: place, device: device, signature: signature)
        return try keys.sealer(serverKey: serverKey).seal(
            authorship.bytes + text, kind: kind, id: id, position: position, nonce: RandomBytes.make(12))
    }
}
