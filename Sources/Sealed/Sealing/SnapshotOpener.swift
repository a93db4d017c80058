import ThicketCrypto
import ThicketProtocol

/// Opens the newest snapshots of many objects of a bucket in sequence. It does what `ObjectSealer`, `SealedSnapshot`
/// and `SealedBucketKeys.serverKey` do for one object, with the common parts prepared once.
///
/// Used by one thread at a time.
package final class SnapshotOpener {
    /// The result of opening a snapshot.
    package struct Look: Equatable {
        package let appKey: String
        /// Whether the object is not deleted.
        package let isLive: Bool

        package init(appKey: String, isLive: Bool) { (self.appKey, self.isLive) = (appKey, isLive) }
    }

    private let ciphers: [UInt32: DerivedOpener]
    private let nameKey: SecretMessageKey256
    /// HKDF's info of an object's key. It ends in the server key.
    private var info: [UInt8]
    /// The authenticated data of a snapshot. It ends in the server key and the position.
    private var data: [UInt8]

    private static let positionBytes = 8

    init(nameKey: SecureBytes, sealRoots: [UInt32: SecureBytes], place: (String) -> SealedPlace) {
        ciphers = sealRoots.mapValues { DerivedOpener(SealedValue.suite, root: $0) }
        self.nameKey = SecretMessageKey256(nameKey)
        // A placeholder for each object's own key.
        let key = String(repeating: "a", count: SealedShape.keyBytes)
        info = SealedBucketKeys.sealInfo(serverKey: key)
        data = ObjectSealer.data([UInt8](repeating: 0, count: SealedValue.headerBytes), place(key).prefixed, 0)
    }

    /// - Parameters:
    ///   - sealed: the snapshot.
    ///   - position: the position under which the server holds it.
    ///   - serverKey: its UTF-8.
    /// - Returns: nil when it does not open, is not a snapshot of that position, or its name does not give the server
    ///   key.
    package func look(
        at sealed: UnsafeRawBufferPointer, position: Int, serverKey: UnsafeRawBufferPointer
    ) -> Look? {
        guard serverKey.count == SealedShape.keyBytes, position >= 0,
            let clear = open(sealed, position, serverKey),
            let content = SealedSnapshot.content(clear: clear, position: position),
            isNamed(content.appKey, serverKey)
        else { return nil }
        return Look(appKey: content.appKey, isLive: content.object != nil)
    }

    private func open(
        _ sealed: UnsafeRawBufferPointer, _ position: Int, _ serverKey: UnsafeRawBufferPointer
    ) -> ArraySlice<UInt8>? {
        let (header, body) = (SealedValue.headerBytes, SealedValue.headerBytes + AEADSuite.nonceBytes)
        guard sealed.count > SealedValue.frameBytes,
            let (kind, epoch) = SealedHeader.beginning(of: sealed), kind == .snapshot,
            let cipher = ciphers[epoch]
        else { return nil }
        Self.put(serverKey, in: &info, before: 0)
        Self.put(serverKey, in: &data, before: Self.positionBytes)
        withUnsafeBytes(of: UInt64(position).bigEndian) { Self.put($0, in: &data, before: 0) }
        data.withUnsafeMutableBytes { data in
            let place = ObjectSealer.headerPlace
            UnsafeMutableRawBufferPointer(rebasing: data[place..<place + header]).copyMemory(
                from: UnsafeRawBufferPointer(rebasing: sealed[..<header]))
        }
        var isOpen = false
        let padded = [UInt8](unsafeUninitializedCapacity: sealed.count - SealedValue.frameBytes) { room, count in
            count = sealed.count - SealedValue.frameBytes
            isOpen = data.withUnsafeBytes { data in
                let parts = DerivedOpener.Parts(
                    sealed: UnsafeRawBufferPointer(rebasing: sealed[body...]),
                    nonce: UnsafeRawBufferPointer(rebasing: sealed[header..<body]), data: data)
                return cipher.open(parts, info: info, into: UnsafeMutableRawBufferPointer(room))
            }
        }
        guard isOpen else { return nil }
        return padded.withUnsafeBytes { SealedValue.padding(.snapshot).content(of: $0) }.map { padded[$0] }
    }

    /// Overwrites bytes of the array; `rest` bytes follow them.
    private static func put(_ bytes: UnsafeRawBufferPointer, in array: inout [UInt8], before rest: Int) {
        array.withUnsafeMutableBytes { room in
            let end = room.count - rest
            UnsafeMutableRawBufferPointer(rebasing: room[end - bytes.count..<end]).copyMemory(from: bytes)
        }
    }

    /// Whether the app's key gives this server key.
    private func isNamed(_ appKey: String, _ serverKey: UnsafeRawBufferPointer) -> Bool {
        withUnsafeTemporaryAllocation(byteCount: SHA256.digestBytes, alignment: 16) { code in
            appKey.withBytes { nameKey.write(UnsafeRawBufferPointer($0), into: code) }
            return Base32.isText(serverKey, of: UnsafeRawBufferPointer(rebasing: code[..<SealedBucketKeys.nameBytes]))
        }
    }
}
