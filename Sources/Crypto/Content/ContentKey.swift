/// The key of one stream of content: a key, a suite and the id of the data (spec 3.3).
///
/// A content key seals one stream once. Other bytes need a new key and a new id; otherwise two plain texts would share
/// nonces, and both would be revealed. The number of the suite is stored beside the key, not in the stream.
public struct ContentKey: Sendable {
    /// Bytes of a data id.
    public static let dataIDBytes = 16

    /// The algorithm of the chunks.
    public let suite: AEADSuite
    /// 16 raw bytes, different for each stream.
    public let dataID: [UInt8]
    private let aead: AEAD

    /// Makes the key of a stream.
    ///
    /// - Parameters:
    ///   - suite: the algorithm.
    ///   - key: 32 bytes.
    ///   - dataID: 16 bytes.
    /// - Throws: `outOfBounds(.key)` or `outOfBounds(.count)` for other lengths.
    public init(_ suite: AEADSuite, key: SecureBytes, dataID: [UInt8]) throws(CryptoError) {
        guard dataID.count == Self.dataIDBytes else { throw .outOfBounds(.count) }
        (self.suite, self.dataID) = (suite, dataID)
        aead = try AEAD(suite, key: key)
    }

    /// - Parameters:
    ///   - clear: the chunk's bytes, as many as in the layout.
    ///   - room: memory for 16 bytes more.
    func seal(
        _ chunk: UInt64, of layout: ContentLayout, _ clear: UnsafeRawBufferPointer,
        into room: UnsafeMutableRawBufferPointer
    ) {
        withData(layout) { data in
            aead.seal(clear, nonce: .chunk(chunk, isLast: layout.isLast(chunk)), data: data, into: room)
        }
    }

    func open(
        _ chunk: UInt64, of layout: ContentLayout, _ sealed: UnsafeRawBufferPointer,
        into room: UnsafeMutableRawBufferPointer
    ) throws(CryptoError) {
        let outcome: Result<Void, CryptoError> = withData(layout) { data in
            Result { () throws(CryptoError) in
                try aead.open(sealed, nonce: .chunk(chunk, isLast: layout.isLast(chunk)), data: data, into: room)
            }
        }
        try outcome.get()
    }

    /// The authenticated data on the stack: data id ‖ exact length of the plain stream (8 bytes).
    private func withData<Value>(_ layout: ContentLayout, _ body: (UnsafeRawBufferPointer) -> Value) -> Value {
        var data: (UInt64, UInt64, UInt64) = (0, 0, layout.length.bigEndian)
        return withUnsafeMutableBytes(of: &data) { room in
            room.copyBytes(from: dataID)
            return body(UnsafeRawBufferPointer(room))
        }
    }
}
