import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketSealed

@testable import ThicketSharing

/// Restarts of devices, and changes of accounts' keys.
extension SharedWorld {
    /// The server's state as far as a device has read it: what a store keeps beside the device's edits.
    func keptEntity(_ chosen: Int) -> SealedEntity {
        let read = devices[chosen].object.object.log.position
        let operations = server.stored.filter { $0.kind == .operation }.prefix(read).map {
            Base64.encodeURL($0.bytes)
        }
        return SealedEntity(snapshots: [0: Base64.encodeURL(server.stored[0].bytes)], tail: operations.reversed())
    }

    /// Restarts the device from its kept bytes and texts.
    mutating func restart(_ chosen: Int) throws {
        let known = devices[chosen].object.object
        devices[chosen].lists = try SharedBucketReader(saved: devices[chosen].lists.saved, keys: circle.verified)
        let text = JSONValue.object(known.kept.json).serialized()
        guard let json = try JSONValue(parsing: text, maxDepth: 600).objectValue,
            let kept = SealedKept(json)
        else { throw Failure(description: "what was kept is none") }
        devices[chosen].object = try SharedObject.restored(
            keptEntity(chosen), appKey: Self.appKey, pending: known.pending?.sealed, kept: kept, with: sealer(chosen))
        let object = devices[chosen].object.object
        guard object.log == known.log, object.object == known.object, object.problem == known.problem,
            object.pending?.sealed == known.pending?.sealed, object.pending?.base == known.pending?.base,
            object.later == known.later, object.isConsistent
        else { throw Failure(description: "device \(chosen) has kept something else") }
    }

    /// Moves the devices of an account to its present keys.
    mutating func moveKeys(_ user: String) throws {
        guard let old = circle.past.last(where: { $0.user == user }) else {
            throw Failure(description: "no keys of before")
        }
        for one in devices.indices where devices[one].user == user {
            let device = devices[one].writer.deviceID
            devices[one].writer = try .init(circle.member(user).account, device: device)
            try refresh(one)
            try devices[one].object.move(from: old, to: sealer(one))
        }
    }
}

extension AuthoredSealer.Writer {
    var deviceID: [UInt8] { device }
}
