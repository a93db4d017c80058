import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketSealed

@testable import ThicketSharing

/// Devices that stop and start again, and accounts with other keys.
extension SharedWorld {
    /// What the server has, as far as a device has read it: what a store keeps beside the device's edits.
    func keptEntity(_ chosen: Int) -> SealedEntity {
        let read: Int = devices[chosen].object.object.log.position
        let operations: [String] = server.stored.filter { $0.kind == .operation }.prefix(read).map {
            Base64.encodeURL($0.bytes)
        }
        return SealedEntity(snapshots: [0: Base64.encodeURL(server.stored[0].bytes)], tail: operations.reversed())
    }

    /// The device goes on with what it has kept, as bytes and texts.
    mutating func restart(_ chosen: Int) throws {
        let known: SealedObject = devices[chosen].object.object
        devices[chosen].lists = try SharedBucketReader(saved: devices[chosen].lists.saved, keys: circle.verified)
        let text: [UInt8] = JSONValue.object(known.kept.json).serialized()
        guard let json: JSONObject = try JSONValue(parsing: text, maxDepth: 600).objectValue,
            let kept: SealedKept = .init(json)
        else { throw Failure(description: "what was kept is none") }
        devices[chosen].object = try SharedObject.restored(
            keptEntity(chosen), appKey: Self.appKey, pending: known.pending?.sealed, kept: kept, with: sealer(chosen))
        let object: SealedObject = devices[chosen].object.object
        guard object.log == known.log, object.object == known.object, object.problem == known.problem,
            object.pending?.sealed == known.pending?.sealed, object.pending?.base == known.pending?.base,
            object.later == known.later, object.isConsistent
        else { throw Failure(description: "device \(chosen) has kept something else") }
    }

    /// The devices of an account go on with the keys that it has now.
    mutating func moveKeys(_ user: String) throws {
        guard let old: PublicKeys = circle.past.last(where: { $0.user == user }) else {
            throw Failure(description: "no keys of before")
        }
        for one: Int in devices.indices where devices[one].user == user {
            let device: [UInt8] = devices[one].writer.deviceID
            devices[one].writer = try .init(circle.member(user).account, device: device)
            try refresh(one)
            try devices[one].object.move(from: old, to: sealer(one))
        }
    }
}

extension AuthoredSealer.Writer {
    var deviceID: [UInt8] { device }
}
