/// When a change carries the object's whole body in the log.
///
/// Enough diffs *and* enough diff bytes: with "or", a long document typed letter by letter would be stored again every
/// few words. The count alone bounds the longest replay.
public struct KeyframePolicy: Sendable, Hashable {
    /// Changes since the last keyframe before one is due by bytes.
    public var diffsMin: Int = 16
    /// Changes since the last keyframe after which one is due whatever their bytes: bounds every replay.
    public var diffsMax: Int = 1_024

    public init() {}

    /// Whether the change being written is to be a keyframe.
    /// - Parameters:
    ///   - diffs: changes since the last keyframe, this one included.
    ///   - diffBytes: bytes of their diffs, this one's included.
    ///   - bodyBytes: bytes of the body after this change.
    public func isDue(diffs: Int, diffBytes: Int, bodyBytes: Int) -> Bool {
        diffs >= diffsMax || (diffs >= diffsMin && diffBytes >= bodyBytes)
    }
}
