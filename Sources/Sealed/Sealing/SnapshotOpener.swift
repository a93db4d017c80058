import ThicketCrypto
import ThicketProtocol

/// Opens the newest snapshots of many objects of a bucket, one after the other: what `ObjectSealer`, `SealedSnapshot`
/// and `SealedBucketKeys.serverKey` do for one object, with everything prepared that is the same for all.
///
/// For one thread at a time.
package final class SnapshotOpener {
    /// What a snapshot turns out to be.
    package struct Look: Equatable {
        package let appKey: String
        /// It is no tombstone.
        package let isLive: Bool

        package init(appKey: String, isLive: Bool) { (self.appKey, self.isLive) = (appKey, isLive) }
    }

    private let ciphers: [UInt32: DerivedOpener]
    private let nameKey: SecretMessageKey256
    /// HKDF's info of an object's key. It ends in the server key.
    private var info: [UInt8]
    /// What is authenticated with a snapshot. It ends in the server key and the position.
    private var data: [UInt8]

    private static let positionBytes = 8

    init(nameKey: SecureBytes, sealRoots: [UInt32: SecureBytes], place: (String) -> SealedPlace) {
        ciphers = sealRoots.mapValues { DerivedOpener(SealedValue.suite, root: $0) }
        self.nameKey = SecretMessageKey256(nameKey)
        // In place of what each object has of its own.
        let key = String(repeating: "a", count: SealedShape.keyBytes)
        info = SealedBucketKeys.sealInfo(serverKey: key)
        data = ObjectSealer.data([UInt8](repeating: 0, count: SealedValue.headerBytes), place(key).prefixed, 0)
    }

    /// - Parameters:
    ///   - sealed: the snapshot.
    ///   - position: what the server calls it.
    ///   - serverKey: its UTF-8.
    /// - Returns: nil when it does not open, is no snapshot of that position, or calls itself by another name than the
    ///   server does.
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

    /// Puts bytes where as many others stand, so many before the end.
    private static func put(_ bytes: UnsafeRawBufferPointer, in array: inout [UInt8], before rest: Int) {
        array.withUnsafeMutableBytes { room in
            let end = room.count - rest
            UnsafeMutableRawBufferPointer(rebasing: room[end - bytes.count..<end]).copyMemory(from: bytes)
        }
    }

    /// Whether the server's name for a key of the app is this one.
    private func isNamed(_ appKey: String, _ serverKey: UnsafeRawBufferPointer) -> Bool {
        withUnsafeTemporaryAllocation(byteCount: SHA256.digestBytes, alignment: 16) { code in
            appKey.withBytes { nameKey.write(UnsafeRawBufferPointer($0), into: code) }
            return Base32.isText(serverKey, of: UnsafeRawBufferPointer(rebasing: code[..<SealedBucketKeys.nameBytes]))
        }
    }
}
