/// Decides which log rows carry the whole body of the object (keyframes).
///
/// Requires enough diffs *and* enough diff bytes: with "or", a long document typed letter by letter would be stored
/// again every few words. `diffsMax` alone bounds the longest replay.
public struct KeyframePolicy: Sendable, Hashable {
    /// Changes since the last keyframe before the byte criterion applies.
    public var diffsMin: Int = 16
    /// Changes since the last keyframe after which the next one is a keyframe regardless of bytes. Bounds every replay.
    public var diffsMax: Int = 1_024

    /// Creates the default policy: a minimum of 16 diffs, a maximum of 1,024.
    public init() {}

    /// Whether the change being written must be a keyframe.
    /// - Parameters:
    ///   - diffs: changes since the last keyframe, including this one.
    ///   - diffBytes: bytes of their diffs, including this one's.
    ///   - bodyBytes: bytes of the body after this change.
    public func isDue(diffs: Int, diffBytes: Int, bodyBytes: Int) -> Bool {
        diffs >= diffsMax || (diffs >= diffsMin && diffBytes >= bodyBytes)
    }
}
