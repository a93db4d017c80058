extension UnsafeMutableRawBufferPointer {
    /// Cuts `count` bytes from the front.
    @inlinable @inline(__always)
    public mutating func removeFirst(_ count: Int) { self = .init(rebasing: self[count...]) }
}
