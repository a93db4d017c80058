import Testing
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketSealed

/// A change that the machine has sent into a sealed bucket.
struct SentChange {
    enum What {
        /// The sealed snapshot.
        case creation(String)
        case operation([UInt8])
        case tombstone([UInt8])
        /// An ordinary `-`.
        case removal
    }

    /// The app's key of the object.
    let name: String
    let what: What
    /// The open change that it represents: the text after `"o":`.
    let open: String

    var isRemoval: Bool {
        switch what {
        case .removal, .tombstone: true
        case .creation, .operation: false
        }
    }

    /// The bytes that must not change when it is sent again.
    var sealed: [UInt8] {
        switch what {
        case .creation(let text): Array(text.utf8)
        case .operation(let bytes), .tombstone(let bytes): bytes
        case .removal: []
        }
    }
}

extension ServedObject {
    /// Receives a change of the machine as the newest.
    mutating func receive(_ change: SentChange, at version: Version) throws {
        switch change.what {
        case .creation(let text): try receive(creation: text, at: version)
        case .operation(let sealed), .tombstone(let sealed):
            let verdict = try receive(operation: sealed, on: newest, at: version)
            #expect(verdict.isAppended, "\(verdict)")
        case .removal: remove(at: version)
        }
    }
}

/// The machine's messages, as the test of an open bucket expects them.
extension SealedScript {
    /// - Returns: nil for a message without a counterpart in an open bucket: the `-` after a tombstone.
    func shown(_ text: [UInt8]) -> String? {
        let plain = String(decoding: text, as: UTF8.self)
        guard let message = try? ClientMessage(parsing: text), case .channel(0, let request) = message
        else { return plain }
        switch request {
        case .initialize(let hello):
            #expect(hello.mode == "sealed", "the machine opens the bucket as another kind")
            return plain
        case .entity(let key, let version):
            guard let name = name(key) else { return plain }
            return "0:e:\(name).\(object(name).script(version))"
        case .indexState(var state):
            state.index = state.index.map { entry in
                guard let name = name(entry.key) else { return entry }
                return IndexState.Entry(key: name, version: entry.version.map(object(name).script))
            }
            state.pending = state.pending.map { change in
                guard let name = name(change.key) else { return change }
                return IndexState.Pending(key: name, sv: change.sv.map(object(name).script), ccid: change.ccid)
            }
            return String(decoding: ClientMessage.channel(0, .indexState(state)).encoded(), as: UTF8.self)
        case .change(let change):
            do {
                return try shown(change)
            } catch {
                Issue.record("no change of a sealed bucket: \(plain): \(error)")
                return plain
            }
        default: return plain
        }
    }

    private func name(_ key: String) -> String? { (try? EntityKey(key)).flatMap { names[$0] } }

    private func shown(_ request: ChangeRequest) throws -> String? {
        try SealedShape.check(key: request.key)
        let change = try opened(request)
        let known = sent[request.ccid]
        if let known {
            #expect(
                known.sealed == change.sealed && known.name == change.name, "other bytes under the ccid of before")
        }
        sent[request.ccid] = change
        let object = object(change.name)
        if case .removal = change.what {
            if object.current?.isDeleted == true { finishRemoval(change.name, request.ccid) }
            // Also when the message is read again.
            if let state = object.current, state.log.object == nil { return nil }
        }
        if known == nil { check(change, on: request.sv, object) }
        let source = request.sv.map { #","sv":\#(object.script($0))"# } ?? ""
        let key = JSONValue.string(change.name).serializedText
        return #"0:c:{"id":\#(key),"ccid":"\#(request.ccid)"\#(source),"o":\#(change.open)}"#
    }

    /// A new operation must be based on the version that it names.
    private func check(_ change: SentChange, on source: Version?, _ object: ServedObject) {
        switch change.what {
        case .operation(let sealed), .tombstone(let sealed):
            let position = source.flatMap { object.states[object.script($0)]?.log.position }
            let clear = object.sealer.open(sealed, kind: .operation, position: 0)?.clear
            let operation = clear.flatMap { try? SealedOperation(clear: $0) }
            #expect(operation?.base == position && position != nil, "the operation is based on another version")
        case .creation: #expect(source == nil, "a creation names a source version")
        case .removal: break
        }
    }

    private func opened(_ request: ChangeRequest) throws -> SentChange {
        switch try SealedShape.check(request) {
        case .creation(let snapshot):
            let place = keys.place(serverKey: request.key)
            guard let bytes = Base64.decodeURL(Array(snapshot.utf8)[...]),
                let log = SealedObject.log(
                    of: bytes, at: 0, place, try keys.sealer(serverKey: request.key)),
                let value = log.object, object(log.appKey).key.text == request.key
            else { throw NotAnObject() }
            let diff = JSONDiff.diff(from: JSONObject(), to: value)
            return SentChange(name: log.appKey, what: .creation(snapshot), open: Self.modification(diff))
        case .insertion(let text):
            let sealed = SealedObject.bytes(of: text)
            guard let name = name(request.key),
                let opened = try keys.sealer(serverKey: request.key).open(
                    sealed, kind: .operation, position: 0)
            else { throw NotAnObject() }
            switch try SealedOperation(clear: opened.clear).content {
            case .tombstone: return SentChange(name: name, what: .tombstone(sealed), open: #""-""#)
            case .edit(let edit):
                guard case .object(let diff) = edit.operation else { throw NotAnObject() }
                return SentChange(name: name, what: .operation(sealed), open: Self.modification(diff))
            case .unreadable: throw NotAnObject()
            }
        case .removal:
            guard let name = name(request.key) else { throw NotAnObject() }
            return SentChange(name: name, what: .removal, open: #""-""#)
        case .compaction: throw NotAnObject()
        }
    }

    private static func modification(_ diff: ObjectDiff) -> String { #""M","v":\#(diff.json.serializedText)"# }
}
